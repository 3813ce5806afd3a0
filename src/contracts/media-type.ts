import { plainBase64 } from '#util/base64.js'
import { bytesOfBase64, latin1Of } from '#util/bytes.js'

/** Beginnings of files, as Latin-1, and where they stand. */
const BEGINNINGS: readonly (readonly [type: string, text: string, at?: number])[] = [
  ['image/png', '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', '\xff\xd8\xff'],
  ['image/gif', 'GIF87a'],
  ['image/gif', 'GIF89a'],
  ['image/webp', 'WEBP', 8],
  ['image/bmp', 'BM'],
  ['image/tiff', 'II*\0'],
  ['image/tiff', 'MM\0*'],
  ['image/x-icon', '\0\0\x01\0'],
  ['image/heic', 'ftyphei', 4],
  ['image/heic', 'ftypmif1', 4],
  ['image/avif', 'ftypavif', 4],
  ['audio/mp4', 'ftypM4A', 4],
  ['audio/wav', 'WAVE', 8],
  ['audio/mpeg', 'ID3'],
  ['audio/mpeg', '\xff\xfb'],
  ['audio/mpeg', '\xff\xf3'],
  ['audio/mpeg', '\xff\xf2'],
  ['audio/flac', 'fLaC'],
  ['audio/ogg', 'OggS'],
]

/** Most bytes before the mark of a PDF. */
const PDF_WITHIN = 1024

/** The type of an image, a sound or a PDF by its first bytes; undefined for any others. */
export function mediaTypeOf(bytes: Uint8Array): string | undefined {
  const start = latin1Of(bytes.subarray(0, PDF_WITHIN))
  const found = BEGINNINGS.find(([, text, at = 0]) => start.startsWith(text, at))
  return found?.[0] ?? (start.startsWith('%PDF') || start.includes('%PDF-') ? 'application/pdf' : undefined)
}

/** The same for base64. */
export function mediaTypeOfBase64(data: string): string | undefined {
  return mediaTypeOf(bytesOfBase64(plainBase64(data.slice(0, (PDF_WITHIN * 4) / 3 + 4)) ?? ''))
}
