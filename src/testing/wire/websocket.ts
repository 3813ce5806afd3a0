import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

/** One WebSocket, as its server sees it. */
export interface ServerSocket {
  readonly send: (text: string) => void
  /** With a closing handshake. */
  readonly close: () => void
  /** Without one, as when a cable is cut. */
  readonly cut: () => void
}

/** Takes a WebSocket: RFC 6455 without extensions, and text alone. */
export function takeWebSocket(
  request: IncomingMessage,
  socket: Duplex,
  onMessage: (text: string, socket: ServerSocket) => void,
): ServerSocket {
  socket.on('error', () => undefined)
  const accepted = createHash('sha1').update(`${request.headers['sec-websocket-key']}${GUID}`).digest('base64')
  const head = ['HTTP/1.1 101 Switching Protocols', 'upgrade: websocket', 'connection: upgrade']
  socket.write(`${head.join('\r\n')}\r\nsec-websocket-accept: ${accepted}\r\n\r\n`)
  const taken: ServerSocket = {
    send: (text) => void socket.write(frame(1, Buffer.from(text))),
    close: () => void socket.end(frame(8, Buffer.from([0x03, 0xe8]))),
    cut: () => void socket.destroy(),
  }
  let rest = Buffer.alloc(0)
  let pieces: Buffer[] = []
  socket.on('data', (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes])
    for (let next = frameIn(rest); next !== null; next = frameIn(rest)) {
      rest = rest.subarray(next.end)
      if (next.opcode > 7) {
        if (next.opcode === 8) socket.end(frame(8, next.payload.subarray(0, 2)))
        continue
      }
      pieces.push(next.payload)
      if (!next.isLast) continue
      const text = Buffer.concat(pieces).toString()
      pieces = []
      onMessage(text, taken)
    }
  })
  return taken
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

interface Frame {
  readonly opcode: number
  readonly isLast: boolean
  readonly payload: Buffer
  readonly end: number
}

/** The first frame of a client, which is masked; null if it has not come whole. */
function frameIn(bytes: Buffer): Frame | null {
  const [first = 0, second = 0] = bytes
  const short = second & 0x7f
  const extra = short === 126 ? 2 : short === 127 ? 8 : 0
  const begin = 6 + extra
  if (bytes.length < begin) return null
  const length = extra === 2 ? bytes.readUInt16BE(2) : extra === 8 ? Number(bytes.readBigUInt64BE(2)) : short
  if (bytes.length < begin + length) return null
  const mask = bytes.subarray(begin - 4, begin)
  const payload = Buffer.from(bytes.subarray(begin, begin + length))
  for (const [index, byte] of payload.entries()) payload[index] = byte ^ (mask[index % 4] ?? 0)
  return { opcode: first & 0x0f, isLast: (first & 0x80) !== 0, payload, end: begin + length }
}
