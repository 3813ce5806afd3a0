import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'

/** One connection, as the server sees it. */
export interface ServerSocket {
  readonly send: (event: unknown) => void
  /** With a closing handshake. */
  readonly close: () => void
  /** Without one, as when a cable is cut. */
  readonly cut: () => void
}

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

/** A server on this machine that takes WebSockets, with the frames of RFC 6455 and no extension. */
export async function socketServer({ accept, refuses, answer }: SocketServerOptions): Promise<SocketServer> {
  const sockets = new Set<Duplex>()
  let opened = 0
  let onIdle = (): void => undefined
  const server = createServer((request, response) => {
    if (answer === undefined) response.writeHead(404).end()
    else answer(request, response)
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => undefined)
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
    const accepted = createHash('sha1').update(`${request.headers['sec-websocket-key']}${GUID}`).digest('base64')
    const head = ['HTTP/1.1 101 Switching Protocols', 'upgrade: websocket', 'connection: upgrade']
    socket.write(`${head.join('\r\n')}\r\nsec-websocket-accept: ${accepted}\r\n\r\n`)
    const onMessage = accept(
      {
        send: (event) => void socket.write(frame(1, Buffer.from(JSON.stringify(event)))),
        close: () => void socket.end(frame(8, Buffer.from([0x03, 0xe8]))),
        cut: () => void socket.destroy(),
      },
      request,
    )
    readFrames(socket, onMessage)
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

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

function frame(opcode: number, payload: Buffer): Buffer {
  const { length } = payload
  const head = length < 126 ? Buffer.from([length]) : Buffer.alloc(9)
  if (length >= 126) {
    head[0] = 127
    head.writeBigUInt64BE(BigInt(length), 1)
  }
  return Buffer.concat([Buffer.from([0x80 | opcode]), head, payload])
}

/** Reads the masked frames of a client; a message may come in several. */
function readFrames(socket: Duplex, onMessage: (message: string) => void): void {
  let rest = Buffer.alloc(0)
  let pieces: Buffer[] = []
  socket.on('data', (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes])
    for (let next = frameIn(rest); next !== null; next = frameIn(rest)) {
      rest = rest.subarray(next.end)
      if (next.opcode === 8) {
        socket.end(frame(8, next.payload.subarray(0, 2)))
        continue
      }
      pieces.push(next.payload)
      if (!next.isLast) continue
      onMessage(Buffer.concat(pieces).toString())
      pieces = []
    }
  })
}

interface Frame {
  readonly opcode: number
  readonly isLast: boolean
  readonly payload: Buffer
  readonly end: number
}

function frameIn(bytes: Buffer): Frame | null {
  if (bytes.length < 2) return null
  const short = bytes[1]! & 0x7f
  const extra = short === 126 ? 2 : short === 127 ? 8 : 0
  if (bytes.length < 6 + extra) return null
  const length = extra === 2 ? bytes.readUInt16BE(2) : extra === 8 ? Number(bytes.readBigUInt64BE(2)) : short
  const begin = 6 + extra
  if (bytes.length < begin + length) return null
  const mask = bytes.subarray(begin - 4, begin)
  const payload = Buffer.from(bytes.subarray(begin, begin + length))
  for (let index = 0; index < payload.length; index++) payload[index]! ^= mask[index % 4]!
  return { opcode: bytes[0]! & 0x0f, isLast: (bytes[0]! & 0x80) !== 0, payload, end: begin + length }
}
