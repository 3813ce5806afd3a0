import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { takeWebSocket } from '#testing/wire/websocket.js'
import type { ServerSocket } from '#testing/wire/websocket.js'

export interface SocketServerOptions {
  /** What it does with the messages of a new connection. */
  readonly accept: (socket: ServerSocket, request: IncomingMessage) => (message: string) => void
  /** Answers a request for a connection with this status in place of one; null takes it. */
  readonly refuses?: () => number | null
  /** Answers ordinary requests. Default: status 404. */
  readonly answer?: (request: IncomingMessage, response: ServerResponse) => void
}

export interface SocketServer extends AsyncDisposable {
  readonly origin: string
  /** Connections that were taken, and that are open now. */
  readonly opened: number
  readonly open: number
  /** Resolves when no connection is open. */
  readonly idle: () => Promise<void>
}

/** A server on this machine that takes WebSockets. */
export async function socketServer({ accept, refuses, answer }: SocketServerOptions): Promise<SocketServer> {
  const sockets = new Set<Duplex>()
  let opened = 0
  let onIdle = (): void => undefined
  const server = createServer((request, response) => {
    if (answer === undefined) response.writeHead(404).end()
    else answer(request, response)
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    const status = refuses?.() ?? null
    if (status !== null) {
      socket.end(`HTTP/1.1 ${status} Refused\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
      return
    }
    opened += 1
    sockets.add(socket)
    socket.on('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0) onIdle()
    })
    const taken = takeWebSocket(request, socket, (text) => onMessage(text))
    const onMessage = accept(taken, request)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get opened() {
      return opened
    },
    get open() {
      return sockets.size
    },
    idle: () => (sockets.size === 0 ? Promise.resolve() : new Promise((resolve) => (onIdle = resolve))),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      })
    },
  }
}
