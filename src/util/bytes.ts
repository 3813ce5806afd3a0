const encoder = new TextEncoder()
/** Node's own kind of bytes, several times as fast; browsers have none. */
const NodeBytes = (
  globalThis as {
    readonly Buffer?: {
      from(text: string): Uint8Array<ArrayBuffer>
      from(buffer: ArrayBuffer, offset: number, length: number): Uint8Array<ArrayBuffer>
      byteLength(text: string): number
    }
  }
).Buffer
/** A mark at the beginning is a part of the text. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Concatenates bytes; a single piece is not copied. */
export function joinedBytes(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const [first] = pieces
  if (first !== undefined && pieces.length === 1) return first as Uint8Array<ArrayBuffer>
  let length = 0
  for (const piece of pieces) length += piece.length
  const joined = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    joined.set(piece, at)
    at += piece.length
  }
  return joined
}

/** A text in UTF-8. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return NodeBytes?.from(text) ?? encoder.encode(text)
}

/** The text of bytes in UTF-8. */
export function textOfBytes(bytes: Uint8Array): string {
  return decoder.decode(bytes)
}

/** A body whose `String` is its text: Node's own kind of bytes, elsewhere the text. */
export function textualBytes(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> | string {
  return NodeBytes?.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) ?? textOfBytes(bytes)
}

/** Each byte as a character, as in Latin-1. For short pieces. */
export function latin1Of(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}

/** The bytes of plain base64. What is too much for whole bytes is left out. */
export function bytesOfBase64(data: string): Uint8Array<ArrayBuffer> {
  const plain = data.replace(/=+$/, '')
  const binary = atob(plain.length % 4 === 1 ? plain.slice(0, -1) : plain)
  const bytes = new Uint8Array(binary.length)
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at)
  return bytes
}

/** Bytes as base64. */
export function base64Of(bytes: Uint8Array): string {
  let binary = ''
  for (let at = 0; at < bytes.length; at += PIECE) binary += latin1Of(bytes.subarray(at, at + PIECE))
  return btoa(binary)
}

/** Arguments of one call: there is a limit. */
const PIECE = 8192

/** Bytes of a text in UTF-8. */
export function byteLength(text: string | Uint8Array): number {
  if (typeof text !== 'string') return text.byteLength
  return NodeBytes?.byteLength(text) ?? encoder.encode(text).byteLength
}
