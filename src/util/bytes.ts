/** Concatenates bytes; a single piece is not copied. */
export function joinedBytes(pieces: readonly Uint8Array[]): Buffer {
  const [first] = pieces
  return first !== undefined && pieces.length === 1 ? bufferOf(first) : Buffer.concat(pieces)
}

/** The same bytes as a `Buffer`, not copied. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
