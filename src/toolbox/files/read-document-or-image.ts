import type { ToolOutcome } from '#core/tools/tool-spec.js'
import { parseJson } from '#util/json.js'
import { mediaTypeOf } from '#contracts/media-type.js'
import { convertDocument, PDF_TO_PAGES } from '../workspace/convert-document.js'
import { FileFailure, invalidInput } from '../workspace/file-failure.js'
import type { OpenedFile } from '../workspace/safe-open.js'

/** Providers accept 5 MB of base64. */
const MAX_IMAGE_BYTES = 3_750_000
/** Providers reject an image with a longer side. */
const MAX_IMAGE_PIXELS = 8_000
const MAX_DOCUMENT_BYTES = 32_000_000
/** Pages that are shown if the call names none. */
const DEFAULT_PAGES = 20

export interface Media {
  readonly file: OpenedFile
  /** Its path as the model knows it. */
  readonly shown: string
  /** Of a PDF: `3` or `2-5`. */
  readonly pages: string | undefined
  /** Longest time of a conversion. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** The text of a document, before it is cut to the length of a result. */
export interface DocumentText {
  readonly kind: 'document'
  /** The text of chosen pages, with a note; else the whole text, of which the call gets the lines that it asked for. */
  readonly byPages: boolean
  readonly text: string
}

/**
 * An image as a part of the result, the text of a PDF or Word document; `undefined` for any other file. By its first bytes: those of a
 * Word document are those of any archive, so its name counts too.
 */
export async function readDocumentOrImage(media: Media): Promise<ToolOutcome | DocumentText | undefined> {
  const kind = await mediaKind(media.file)
  if (kind === 'pdf') return readPdf(media)
  requireNoPages(media)
  if (kind === 'document') return readDocx(media)
  return kind === 'image' ? readImage(media) : undefined
}

/** What a file is by its first bytes. */
export async function mediaKind(file: OpenedFile): Promise<'pdf' | 'document' | 'image' | undefined> {
  const beginning = Buffer.alloc(HEADER_BYTES)
  const { bytesRead } = await file.handle.read(beginning, 0, HEADER_BYTES, 0)
  const header = beginning.subarray(0, bytesRead)
  if (header.toString('latin1', 0, 5) === '%PDF-') return 'pdf'
  if (isWordDocument(file, header)) return 'document'
  return imageHeader(header) === undefined ? undefined : 'image'
}

/** @throws FileFailure for the pages of a file that has none. */
export function requireNoPages({ pages, shown }: Pick<Media, 'pages' | 'shown'>): void {
  if (pages !== undefined) throw invalidInput(`\`pages\` is for PDF files, which ${shown} is not: leave it out`)
}

/** An archive, or the container of encrypted documents and of those of Word 97 to 2003. */
function isWordDocument(file: OpenedFile, header: Buffer): boolean {
  const beginning = header.toString('latin1', 0, 4)
  if (beginning === 'PK\x03\x04') return /\.do[ct][xm]$/i.test(file.path)
  return beginning === '\xd0\xcf\x11\xe0' && /\.do[ct][xm]?$/i.test(file.path)
}

async function readDocx(media: Media): Promise<DocumentText> {
  const { shown, timeoutMs, signal } = media
  const bytes = await mediaBytes(media, MAX_DOCUMENT_BYTES)
  const { docxToMarkdown } = await import('../workspace/docx.js')
  return {
    kind: 'document',
    byPages: false,
    text: await docxToMarkdown(bytes, { name: `document ${shown}`, timeoutMs, signal }),
  }
}

async function readImage(media: Media): Promise<ToolOutcome> {
  const { file, shown } = media
  const bytes = await mediaBytes(media, MAX_IMAGE_BYTES)
  const { mediaType, size } = imageHeader(bytes) ?? throwChanged(shown)
  if (size !== null && Math.max(size.width, size.height) > MAX_IMAGE_PIXELS) {
    throw new FileFailure(
      'FileTooLarge',
      `${shown} has ${pixelsText(size)}, more than the ${MAX_IMAGE_PIXELS} of a side that models accept`,
    )
  }
  return {
    kind: 'succeeded',
    content: `${shown}: ${mediaType}${size === null ? '' : `, ${pixelsText(size)}`}, ${bytes.length} bytes`,
    parts: [{ type: 'image', data: bytes.toString('base64'), mediaType }],
    metadata: { path: file.path, media_type: mediaType, size_bytes: bytes.length, ...size },
  }
}

async function readPdf(media: Media): Promise<DocumentText> {
  const { shown, timeoutMs, signal } = media
  const bytes = await mediaBytes(media, MAX_DOCUMENT_BYTES)
  const parsed = parseJson(await convertDocument(PDF_TO_PAGES, bytes, { name: `PDF ${shown}`, timeoutMs, signal }))
  const texts = parsed.ok && Array.isArray(parsed.value) ? parsed.value.map(String) : []
  const [first, last] = pageRange(media, texts.length)
  const chosen = texts.slice(first - 1, last)
  const more =
    last < texts.length ? `; set pages=${last + 1}-${Math.min(last + DEFAULT_PAGES, texts.length)} for more` : ''
  const note = `read pages ${first} to ${last} of ${texts.length} from ${shown}${more}`
  const empty = chosen.every((text) => text.trim() === '')
    ? ['The pages have no text: they may be scanned images.']
    : []
  const pages = chosen.map((text, index) => `--- page ${first + index} ---\n${text}`)
  return { kind: 'document', byPages: true, text: [note, ...empty, ...pages].join('\n') }
}

function pageRange({ pages, shown }: Media, count: number): readonly [number, number] {
  if (pages === undefined) return [1, Math.min(count, DEFAULT_PAGES)]
  const [first = 1, last = first] = pages.split('-').map(Number)
  if (first >= 1 && first <= last && first <= count) return [first, Math.min(last, count)]
  throw invalidInput(`\`pages\` is \`${pages}\`, but ${shown} has the pages 1 to ${count}`)
}

async function mediaBytes({ file: { handle, stats }, shown }: Media, most: number): Promise<Buffer> {
  const size = Number(stats.size)
  if (size > most) {
    throw new FileFailure('FileTooLarge', `${shown} has ${size} bytes, more than the ${most} that can be read`, {
      metadata: { size_bytes: size, max_read_bytes: most },
    })
  }
  const bytes = Buffer.alloc(size)
  const { bytesRead } = await handle.read(bytes, 0, size, 0)
  return bytes.subarray(0, bytesRead)
}

function throwChanged(shown: string): never {
  throw new FileFailure('Conflict', `${shown} was changed while it was read: read it again`)
}

function pixelsText({ width, height }: NonNullable<ImageHeader['size']>): string {
  return `${width} x ${height} pixels`
}

/** An image by its first bytes. */
interface ImageHeader {
  readonly mediaType: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'
  /** In pixels; null if the header does not state it. */
  readonly size: { readonly width: number; readonly height: number } | null
}

/** Enough to recognize a file and, except for JPEG, to find its size. */
const HEADER_BYTES = 32

/** The header of a PNG, JPEG, GIF or WebP image; `undefined` for other bytes. */
function imageHeader(bytes: Buffer): ImageHeader | undefined {
  const mediaType = mediaTypeOf(bytes)
  switch (mediaType) {
    case 'image/png':
      return {
        mediaType,
        size: bytes.length < 24 ? null : { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) },
      }
    case 'image/gif':
      return {
        mediaType,
        size: bytes.length < 10 ? null : { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) },
      }
    case 'image/jpeg':
      return { mediaType, size: jpegSize(bytes) }
    case 'image/webp':
      return { mediaType, size: webpSize(bytes) }
    case undefined:
    default:
      return undefined
  }
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
