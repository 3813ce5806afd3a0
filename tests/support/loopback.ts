import { createServer } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import type { AddressInfo, Server as TcpServer, Socket } from 'node:net'

/** A request that a loopback server got, whole. */
interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** Which connection it came on, counted from 0. */
  readonly connection: number
}

interface Loopback {
  readonly url: string
  readonly received: Received[]
  readonly connections: Set<Socket>
  [Symbol.asyncDispose](): Promise<void>
}

/** An HTTP server of this machine that answers each request, once it has come whole, as told. */
export async function loopback(
  answer: (response: ServerResponse, request: Received, raw: IncomingMessage) => void,
): Promise<Loopback> {
  const received: Received[] = []
  const numbers = new Map<Socket, number>()
  const server = createServer((raw, response) => {
    const pieces: Buffer[] = []
    raw.on('data', (piece: Buffer) => pieces.push(piece))
    raw.on('end', () => {
      const { method = '', url: path = '', headers } = raw
      const connection = numbers.get(raw.socket) ?? -1
      const request = { method, path, headers, body: Buffer.concat(pieces).toString(), connection }
      received.push(request)
      answer(response, request, raw)
    })
  })
  server.on('connection', (socket) => numbers.set(socket, numbers.size))
  return { ...(await listening(server)), received }
}

/** A TCP server of this machine: what comes is told piece by piece, what goes back is the test's. */
export async function rawLoopback(connected: (socket: Socket) => void): Promise<Omit<Loopback, 'received'>> {
  return await listening(createTcpServer(connected))
}

async function listening(server: Server | TcpServer): Promise<Omit<Loopback, 'received'>> {
  const connections = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    connections.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => connections.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    connections,
    async [Symbol.asyncDispose]() {
      for (const socket of connections) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
