import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { fileLog } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { createHandlers, localOnly } from 'thinharness/ui'
import agent from './thinharness.config.js'

const log = fileLog('.thinharness/chats')
const sessions = new Sessions({ harness: agent, log })
const { aiSdk } = createHandlers({ sessions, authorize: localOnly })
const listener = getRequestListener(aiSdk)
const server = createServer((request, response) => void listener(request, response))

// At a deploy: the runs in progress stay in the log …
process.once('SIGTERM', () => {
  server.close()
  server.closeAllConnections()
  void sessions.close().then(() => process.exit(0))
})

// … and the next process continues them.
for await (const { threadId } of sessions.list({ phase: 'interrupted' })) {
  const chat = await sessions.open(threadId)
  await chat.recover()
}

const port = Number(process.env['PORT'] ?? 3000)
server.listen(port, '127.0.0.1', () => console.log('listening', server.address()))
