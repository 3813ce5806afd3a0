/** Concatenates bytes; a single piece is not copied. */
export function joinedBytes(pieces: readonly Uint8Array[]): Buffer {
  const [first] = pieces
  return first !== undefined && pieces.length === 1 ? bufferOf(first) : Buffer.concat(pieces)
}

/** The same bytes as a `Buffer`, not copied. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Bytes of a text in UTF-8. */
export function byteLength(text: string | Uint8Array): number {
  if (typeof text !== 'string') return text.byteLength
  const { Buffer } = globalThis as { readonly Buffer?: { byteLength(text: string): number } }
  // Browsers have no `Buffer`.
  return Buffer?.byteLength(text) ?? new TextEncoder().encode(text).byteLength
}
