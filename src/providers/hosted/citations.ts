import type { Citation, TextPart } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import { objectsIn, stringIn } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'

/**
 * The UTF-16 offset of a count of Unicode characters in `text`, which is how most APIs count. A count beyond the text is its end.
 *
 * @example
 *   characterOffset('🌊 high tide', 2) // 3
 */
export function characterOffset(text: string, count: number): number {
  if (count <= 0) return 0
  let [offset, left] = [0, count]
  for (const character of text) {
    if (left-- === 0) return offset
    offset += character.length
  }
  return offset
}

/**
 * The UTF-16 offset of a count of UTF-8 bytes in `text`. A count beyond the text is its end.
 *
 * @example
 *   byteOffset('größer', 4) // 3
 */
export function byteOffset(text: string, count: number): number {
  let [offset, bytes] = [0, 0]
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4
    if (bytes > count) return offset
    offset += character.length
  }
  return offset
}

/** Fields of a citation that are there. */
function citation(passage: Pick<Citation, 'from' | 'to'>, given: Readonly<Record<string, unknown>>): Citation {
  const words = Object.entries(given).filter(([, value]) => typeof value === 'string' && value !== '')
  return { ...Object.fromEntries(words), ...passage }
}

/** `annotations`, if there are any, as fields of a text part. */
export function annotated(annotations: readonly Citation[]): Pick<TextPart, 'annotations'> {
  return annotations.length === 0 ? {} : { annotations }
}

/**
 * The citations of a text block of the Messages API: each is of the whole block.
 *
 * @example
 *   anthropicCitations([{ type: 'web_search_result_location', url: 'https://a.example', title: 'A', cited_text: '…' }], 'High tide.')
 *   // [{ url: 'https://a.example', title: 'A', quote: '…', from: 0, to: 10 }]
 */
export function anthropicCitations(citations: unknown, text: string): readonly Citation[] {
  return objectsIn(citations).map((given) => {
    const { url, source, title, document_title: document, file_id: fileId, cited_text: quote } = given
    const address = url ?? (URL.canParse(stringIn(source)) ? source : undefined)
    return citation({ from: 0, to: text.length }, { url: address, title: title ?? document ?? source, fileId, quote })
  })
}

/**
 * The annotations of a text by OpenAI's APIs, and by servers with the same ones. A file is cited at a place of the text: then `from`
 * and `to` are this place. A passage that is empty, as gateways send it, is the whole text.
 *
 * @example
 *   openAiCitations([{ type: 'url_citation', url: 'https://a.example', title: 'A', start_index: 0, end_index: 9 }], 'High tide. …')
 *   // [{ url: 'https://a.example', title: 'A', from: 0, to: 9 }]
 */
export function openAiCitations(annotations: unknown, text: string): readonly Citation[] {
  return objectsIn(annotations).flatMap((given) => {
    const { type, url_citation: nested } = given
    const fields = isObject(nested) ? nested : given
    const { url, title, filename, file_id: fileId, content: quote } = fields
    if (stringIn(url) === '' && stringIn(fileId) === '') return []
    const name = type === 'url_citation' ? title : (filename ?? title)
    return [citation(passageOf(fields, text), { url, title: name, fileId, quote })]
  })
}

function passageOf(
  { start_index: start, end_index: end, index }: WireFields,
  text: string,
): Pick<Citation, 'from' | 'to'> {
  if (typeof start === 'number' && typeof end === 'number' && end > start)
    return { from: characterOffset(text, start), to: characterOffset(text, end) }
  if (typeof index !== 'number') return { from: 0, to: text.length }
  const place = characterOffset(text, index)
  return { from: place, to: place }
}
