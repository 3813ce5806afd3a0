// A support desk: customers write to an agent over HTTP, and the staff approve its refunds in an inbox.
//   npm run example -- support-desk           prints the addresses of the pages
//   kill -TERM <pid>, or kill -9 <pid>        approvals that wait and answers in progress are in the log
//   npm run example -- support-desk           the next process continues them; no refund is made twice
import { serve } from '@hono/node-server'
import { Sessions } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'
import { smallRefunds, supportAgent } from './agent.js'
import { deskOf } from './desk.js'
import { pagesOf } from './pages.js'
import { signIn, signInLinks } from './people.js'
import { Shop } from './shop.js'

const DAY_MS = 24 * 3600_000

const log = sqliteLog('desk.db')
const shop = new Shop('refunds.jsonl')
const agent = supportAgent(shop)
const sessions = new Sessions({ log, harness: agent, responder: smallRefunds(shop) })
const { customers, staff } = deskOf(sessions)
const pages = await pagesOf(new URL('./', import.meta.url))

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  if (pathname.startsWith('/api/')) return customers(request)
  if (pathname.startsWith('/staff/api/')) return staff(request)
  return signIn(request) ?? pages(pathname)
}

/** Continues what the last process left, or had when it crashed. What waits for the staff goes on waiting. */
async function continueConversations(): Promise<void> {
  for await (const { threadId, phase } of sessions.list()) {
    if (phase !== 'interrupted') continue
    const chat = await sessions.open(threadId)
    // A run that another process executes is left to it.
    if (await chat.recover()) await chat.queue.release()
  }
}

/** Refuses what nobody has decided for three days. */
function expire(): void {
  const refusal = { approved: false, reason: 'Nobody could decide in time. Please write again.' }
  sessions.expire({ afterMs: 3 * DAY_MS, answer: () => refusal }).catch(console.error)
}

const stopped = new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
})
const place = { hostname: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }
const server = serve({ fetch: answer, ...place }, ({ port }) =>
  signInLinks(`http://127.0.0.1:${port}`).forEach((link) => console.log(link)),
)
const expiry = setInterval(expire, DAY_MS / 24)
await continueConversations()

await stopped
clearInterval(expiry)
server.close()
if ('closeAllConnections' in server) server.closeAllConnections()
await sessions.close()
await agent.close()
await log.close()
console.log('closed')
