import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { Harness } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'
import { createHandlers, localOnly } from 'thinharness/ui'

const sessions = new Sessions({ log: sqliteLog('chat.db'), harness: new Harness({ model: 'openai:gpt-5.5' }) })
const { aiSdk, agUi, events, requests } = createHandlers({ sessions, authorize: localOnly })

function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  if (pathname.startsWith('/api/chat')) return aiSdk(request)
  if (pathname.startsWith('/api/agui')) return agUi(request)
  return pathname.endsWith('/events') ? events(request) : requests(request)
}

const listener = getRequestListener(answer)

// server.listen(3000, '127.0.0.1'): at any other address, `authorize` has to know who asks.
export const server = createServer((request, response) => void listener(request, response))
