/** An image by its first bytes. */
export interface ImageHeader {
  readonly mediaType: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'
  /** In pixels; null if the header does not state it. */
  readonly size: { readonly width: number; readonly height: number } | null
}

/** Enough to recognize a file and, except for JPEG, to find its size. */
export const HEADER_BYTES = 32

/** The header of a PNG, JPEG, GIF or WebP image; `undefined` for other bytes. */
export function imageHeader(bytes: Buffer): ImageHeader | undefined {
  const starts = (text: string, at = 0): boolean => bytes.toString('latin1', at, at + text.length) === text
  if (starts('\x89PNG\r\n\x1a\n')) {
    const size = bytes.length < 24 ? null : { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
    return { mediaType: 'image/png', size }
  }
  if (starts('GIF87a') || starts('GIF89a')) {
    const size = bytes.length < 10 ? null : { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }
    return { mediaType: 'image/gif', size }
  }
  if (starts('\xff\xd8\xff')) return { mediaType: 'image/jpeg', size: jpegSize(bytes) }
  if (starts('RIFF') && starts('WEBP', 8)) return { mediaType: 'image/webp', size: webpSize(bytes) }
  return undefined
}

/** From the first frame header; segments before it are skipped. */
function jpegSize(bytes: Buffer): ImageHeader['size'] {
  for (let at = 2; at + 9 <= bytes.length && bytes[at] === 0xff;) {
    const marker = bytes[at + 1] ?? 0
    if (marker === 0xff) {
      at++
      continue
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
    if (isFrame) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) }
    at += 2 + bytes.readUInt16BE(at + 2)
  }
  return null
}

function webpSize(bytes: Buffer): ImageHeader['size'] {
  if (bytes.length < 30) return null
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8X':
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 }
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21)
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
    }
    case 'VP8 ':
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff }
    default:
      return null
  }
}
