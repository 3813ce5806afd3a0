import type { AssistantPart, ContentPart } from '#contracts/entry.js'
import { isObject } from '#util/json.js'

export type FilePart = Extract<ContentPart, { readonly type: 'file' }>

/** False for empty text, which some APIs reject. */
export function hasContent(part: ContentPart): boolean {
  return part.type !== 'text' || part.text !== ''
}

const ALIASES: ReadonlyMap<string, string> = new Map([
  ['image/jpg', 'image/jpeg'],
  ['audio/mp3', 'audio/mpeg'],
  ['audio/x-wav', 'audio/wav'],
  ['audio/wave', 'audio/wav'],
  ['audio/vnd.wave', 'audio/wav'],
])

/** The usual name of a media type, without parameters. */
export function bareType(mediaType: string): string {
  const type = mediaType.replace(/;.*$/s, '').trim().toLowerCase()
  return ALIASES.get(type) ?? type
}

const TEXT_TYPE = /^text\/|^application\/(?:json|xml|yaml|x-yaml|toml|javascript|x-sh|sql)$|\+(?:json|xml)$/

export function isTextType(mediaType: string): boolean {
  return TEXT_TYPE.test(bareType(mediaType))
}

/** A text file as text, for APIs that accept text files in no other form. */
export function textOfFile({ data, mediaType, name }: FilePart): string {
  const title = name === undefined ? 'A file' : `The file \`${name}\``
  return `${title} (${bareType(mediaType)}):\n\n${Buffer.from(data, 'base64').toString()}`
}

export function dataUrl(data: string, mediaType: string): string {
  return `data:${mediaType};base64,${data}`
}

const DATA_URL = /^data:([^;,]+)[^,]*;base64,(.*)$/s

/** The content of a `data:` URL; null for any other URL. */
export function parseDataUrl(url: string): { readonly data: string; readonly mediaType: string } | null {
  const [, mediaType, data] = DATA_URL.exec(url) ?? []
  return mediaType === undefined || data === undefined ? null : { data, mediaType }
}

/** Text in place of a part of a tool result that the API does not accept, so that the model knows of it. */
export function omissionText(problem: string): string {
  return `[Left out of this result. ${problem}]`
}

/** Reasoning that cannot be sent back as reasoning. */
export function thinkingText(text: string): string {
  return `<thinking>\n${text}\n</thinking>`
}

/** The text in another provider's part, such as a refusal; empty if there is none. */
export function textWithin({ native }: AssistantPart): string {
  if (native === undefined || !isObject(native.data)) return ''
  const objects: readonly unknown[] = [native.data, ...Object.values(native.data)]
  for (const object of objects.filter(isObject)) {
    const text = [object['text'], object['refusal']].find((value) => typeof value === 'string')
    if (text !== undefined) return text
  }
  return ''
}

/** JSON text of a model with the escape `\ufffd` in place of each escape that is half of a surrogate pair. */
export function wellFormedEscapes(text: string): string {
  return text.replace(ESCAPE, (escape) => (HALF_ESCAPE.test(escape) ? '\\ufffd' : escape))
}

/** A pair of escapes that is one character, half of a pair, or any other escape: of `\\\\`, too, both are consumed. */
const ESCAPE = /\\(?:ud[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|ud[89a-f][\da-f]{2}|[^])/gi
const HALF_ESCAPE = /^\\u.{4}$/
