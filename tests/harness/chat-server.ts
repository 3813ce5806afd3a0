import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const ANSWER = {
  id: 'c',
  object: 'chat.completion',
  created: 0,
  model: 'tiny',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
}

/** A server of chat completions that always says hello, and counts the connections that are open. */
interface ChatServer extends AsyncDisposable {
  readonly url: string
  readonly connections: number
}

export async function chatServer(): Promise<ChatServer> {
  const open = new Set<unknown>()
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify(ANSWER))
  }).on('connection', (socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    get connections() {
      return open.size
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
