import type { ToolOutcome } from '../../tools/outcome.js'
import { parseJson } from '../../util/json.js'
import { convert, PDF_TO_PAGES } from '../workspace/convert.js'
import { FileFailure, invalidInput } from '../workspace/failure.js'
import type { OpenedFile } from '../workspace/safe-open.js'
import { HEADER_BYTES, imageHeader } from './images.js'
import type { ImageHeader } from './images.js'

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
export async function readMedia(media: Media): Promise<ToolOutcome | DocumentText | undefined> {
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
  const { shown, signal } = media
  const bytes = await bytesOf(media, MAX_DOCUMENT_BYTES)
  const { docxToMarkdown } = await import('../workspace/docx.js')
  return { kind: 'document', byPages: false, text: await docxToMarkdown(bytes, { name: `document ${shown}`, signal }) }
}

async function readImage(media: Media): Promise<ToolOutcome> {
  const { file, shown } = media
  const bytes = await bytesOf(media, MAX_IMAGE_BYTES)
  const { mediaType, size } = imageHeader(bytes) ?? changed(shown)
  if (size !== null && Math.max(size.width, size.height) > MAX_IMAGE_PIXELS) {
    throw new FileFailure(
      'FileTooLarge',
      `${shown} has ${pixels(size)}, more than the ${MAX_IMAGE_PIXELS} of a side that models accept`,
    )
  }
  return {
    kind: 'succeeded',
    content: `${shown}: ${mediaType}${size === null ? '' : `, ${pixels(size)}`}, ${bytes.length} bytes`,
    parts: [{ type: 'image', data: bytes.toString('base64'), mediaType }],
    metadata: { path: file.path, media_type: mediaType, size_bytes: bytes.length, ...size },
  }
}

async function readPdf(media: Media): Promise<DocumentText> {
  const { shown, signal } = media
  const bytes = await bytesOf(media, MAX_DOCUMENT_BYTES)
  const parsed = parseJson(await convert(PDF_TO_PAGES, bytes, { name: `PDF ${shown}`, signal }))
  const texts = parsed.ok && Array.isArray(parsed.value) ? parsed.value.map(String) : []
  const [first, last] = rangeOf(media, texts.length)
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

function rangeOf({ pages, shown }: Media, count: number): readonly [number, number] {
  if (pages === undefined) return [1, Math.min(count, DEFAULT_PAGES)]
  const [first = 1, last = first] = pages.split('-').map(Number)
  if (first >= 1 && first <= last && first <= count) return [first, Math.min(last, count)]
  throw invalidInput(`\`pages\` is \`${pages}\`, but ${shown} has the pages 1 to ${count}`)
}

async function bytesOf({ file: { handle, stats }, shown }: Media, most: number): Promise<Buffer> {
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

function changed(shown: string): never {
  throw new FileFailure('Conflict', `${shown} was changed while it was read: read it again`)
}

function pixels({ width, height }: NonNullable<ImageHeader['size']>): string {
  return `${width} x ${height} pixels`
}
