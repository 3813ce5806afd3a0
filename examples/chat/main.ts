// A chat page: streaming, tool calls, approvals, questions, a plan, tasks, queue and steering.
//   npm run example -- chat              prints the address of the page
//   THINHARNESS_MODEL=anthropic:claude-sonnet-5 npm run example -- chat
// The page can be reloaded in the middle of an answer, opened twice, and lose its connection: everything is in the log.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { Sessions } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'
import { createHandlers } from 'thinharness/ui'
import { shop } from './shop.js'

const log = sqliteLog('chat.db')
const modes = shop()
const sessions = new Sessions({ log, modes, defaultMode: 'chat' })
const { events, requests } = createHandlers({ sessions })

const page = new URL('../../../examples/chat/', import.meta.url)
const { outputFiles } = await build({
  ...{ entryPoints: [fileURLToPath(new URL('page/page.ts', page))], bundle: true, format: 'esm', write: false },
})
const FILES: Readonly<Record<string, readonly [type: string, body: Uint8Array]>> = {
  '/': ['text/html', await readFile(new URL('page.html', page))],
  '/page.css': ['text/css', await readFile(new URL('page.css', page))],
  '/page.js': ['text/javascript', outputFiles[0]?.contents ?? new Uint8Array()],
}

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  if (pathname.startsWith('/api/')) return pathname.endsWith('/events') ? events(request) : requests(request)
  const [type, body] = FILES[pathname] ?? []
  if (type === undefined) return new Response('Not found', { status: 404 })
  const headers = {
    'content-type': `${type}; charset=utf-8`,
    'content-security-policy': "default-src 'self'; img-src 'self' data:",
  }
  return new Response(body as Uint8Array<ArrayBuffer>, { headers })
}

/** A request of Node as a web-standard one. Its signal aborts when the client goes away. */
function asRequest(incoming: IncomingMessage, outgoing: ServerResponse): Request {
  const { method = 'GET', url = '/', headers } = incoming
  const gone = new AbortController()
  outgoing.on('close', () => gone.abort())
  const init = { method, headers: headers as Record<string, string>, signal: gone.signal }
  const address = `http://${headers.host ?? 'localhost'}${url}`
  if (method === 'GET') return new Request(address, init)
  return new Request(address, { ...init, body: Readable.toWeb(incoming) as never, duplex: 'half' })
}

async function send(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  if (response.body === null) outgoing.end()
  else for await (const piece of Readable.fromWeb(response.body)) outgoing.write(piece)
  outgoing.end()
}

const server = createServer((incoming, outgoing) => {
  answer(asRequest(incoming, outgoing))
    .then((response) => send(response, outgoing))
    .catch(() => outgoing.destroy())
})
const stopped = new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
})
server.listen(Number(process.env['PORT'] ?? 8080), '127.0.0.1', () => {
  const address = server.address()
  console.log(`Open http://127.0.0.1:${typeof address === 'object' ? address?.port : address}/`)
})
await stopped
server.closeAllConnections()
server.close()
await sessions.close()
for (const mode of Object.values(modes)) await mode.close()
await log.close()
