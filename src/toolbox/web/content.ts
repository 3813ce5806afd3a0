import { TextDecoder } from 'node:util'
import { fetchFailure } from './fetch-failure.js'

/** The kind of a body: converted to Markdown or text, shown unchanged, or rejected. */
export type ContentKind = 'html' | 'pdf' | 'docx' | 'text' | 'binary'

export interface ContentType {
  /** Lower case, without parameters; empty if the response has none. */
  readonly mediaType: string
  readonly charset: string | undefined
}

/** Bytes at the start of a page that are searched for its type. */
const SNIFFED_BYTES = 1_024

const TEXT =
  /^text\/|^application\/(?:json|ld\+json|xml|yaml|x-yaml|toml|javascript|ecmascript|x-javascript|typescript|x-sh|sql|x-ndjson|ndjson|jsonl|graphql|rtf|x-www-form-urlencoded)$|\+(?:json|xml|yaml)$/

const DOCX =
  /^application\/(?:vnd\.openxmlformats-officedocument\.wordprocessingml\.(?:document|template)|vnd\.ms-word\.(?:document|template)\.macroenabled\.12)$/

export function contentTypeOf(header = ''): ContentType {
  const [type = '', ...parameters] = header.slice(0, 1_000).split(';')
  const charset = parameters.map((each) => /^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/i.exec(each)?.[1]).find(Boolean)
  return { mediaType: type.trim().toLowerCase(), charset }
}

/** The kind by the type alone; `undefined` if it depends on the body. */
export function kindOfType({ mediaType }: ContentType): ContentKind | undefined {
  if (mediaType === 'text/html' || mediaType === 'application/xhtml+xml') return 'html'
  if (mediaType === 'application/pdf' || mediaType === 'application/x-pdf') return 'pdf'
  if (DOCX.test(mediaType)) return 'docx'
  if (TEXT.test(mediaType)) return 'text'
  return mediaType === '' || mediaType === 'application/octet-stream' || mediaType === 'binary/octet-stream'
    ? undefined
    : 'binary'
}

/** The kind of a body. Text with NUL bytes is binary, whatever its type, unless a mark or the charset says UTF-16. */
export function contentKind(type: ContentType, bytes: Buffer): ContentKind {
  const start = bytes.subarray(0, SNIFFED_BYTES)
  const kind = kindOfType(type) ?? sniffedKind(bytes)
  const isWide = /utf-?16/i.test(type.charset ?? '') || markedCharset(start)?.startsWith('utf-16') === true
  return (kind === 'text' || kind === 'html') && start.includes(0) && !isWide ? 'binary' : kind
}

/** The text of a body: by its byte order mark, else the charset of the header, else that of the page, else UTF-8. */
export function decodeText(type: ContentType, bytes: Buffer): string {
  const wanted = markedCharset(bytes) ?? type.charset ?? writtenCharset(bytes) ?? 'utf-8'
  return decoderFor(wanted).decode(bytes)
}

/** @throws FileFailure `UnsupportedContent`. */
export function refuseBinary({ mediaType }: ContentType): never {
  const type = mediaType === '' ? 'not text' : `\`${mediaType.slice(0, 100)}\``
  throw fetchFailure('UnsupportedContent', `The page is ${type}. Only text, HTML, PDF and DOCX are fetched.`)
}

function sniffedKind(bytes: Buffer): ContentKind {
  const start = bytes.subarray(0, SNIFFED_BYTES)
  if (start.subarray(0, 5).toString('latin1') === '%PDF-') return 'pdf'
  // An archive has the names of its files as they are.
  if (start.subarray(0, 4).toString('latin1') === 'PK\x03\x04' && bytes.includes('word/document.xml')) return 'docx'
  return /^\s*(?:<!--[^]*?-->\s*)?<(?:!doctype\s+html|html|head|body)\b/i.test(start.toString('latin1'))
    ? 'html'
    : 'text'
}

function markedCharset(bytes: Buffer): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8'
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : undefined
}

/** `<meta charset="…">`, `<meta content="…; charset=…">` or the declaration of XML. */
function writtenCharset(bytes: Buffer): string | undefined {
  const start = bytes.subarray(0, SNIFFED_BYTES).toString('latin1')
  const written =
    /<meta[^>]{0,500}?charset\s*=\s*["']?([\w-]{1,40})/i.exec(start) ??
    /^<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w-]{1,40})/i.exec(start)
  return written?.[1]
}

function decoderFor(charset: string): TextDecoder {
  try {
    return new TextDecoder(charset)
  } catch {
    return new TextDecoder()
  }
}
