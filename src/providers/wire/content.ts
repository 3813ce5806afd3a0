import { shownName } from '#contracts/entry.js'
import type { AssistantPart, ContentPart, GivenPart } from '#contracts/entry.js'
import { parseDataUrl, plainBase64 } from '#util/base64.js'
import { bytesOfBase64, textOfBytes } from '#util/bytes.js'
import { isObject } from '#util/json.js'
import { mediaTypeOfBase64 } from '#contracts/media-type.js'

type MediaPart = Exclude<GivenPart, { readonly type: 'text' }>
export type FilePart = Extract<ContentPart, { readonly type: 'file'; readonly data: string }>

/** The parts that say something: text of white space alone is left out, which some APIs reject. */
export function filledParts(content: readonly ContentPart[]): readonly GivenPart[] {
  return content.map(asGiven).filter((part) => part.type !== 'text' || part.text.trim() !== '')
}

/** A part that every provider can be told of: a file that another one has stored is a sentence. */
export function asGiven(part: ContentPart): GivenPart {
  if (!('id' in part)) return part
  return { type: 'text', text: omissionText(`${shownName(part)} Other models cannot read it.`, 'message') }
}

/** A part for an API, or the reason why no API takes it. */
type SoundPart = { readonly part: GivenPart } | { readonly part: null; readonly problem: string }

/**
 * A part as its bytes say: labels are often wrong, and one file that an API does not take would fail every later request of the
 * conversation.
 */
export function soundPart(part: GivenPart): SoundPart {
  if (part.type === 'text') return { part }
  if ('url' in part) {
    if (!/^data:/i.test(part.url)) return { part }
    const image = parseDataUrl(part.url)
    return image === null ? unsound(part, 'is a `data:` URL without base64') : soundPart({ type: 'image', ...image })
  }
  const data = plainBase64(part.data)
  const label = bareType(part.mediaType)
  if (data === null) return unsound(part, 'is not base64')
  if (data === '') return unsound(part, 'is empty')
  const isText = isTextType(label) && !label.startsWith('image/')
  const found = isText ? part.mediaType : mediaTypeOfBase64(data)
  if (found === undefined && HAVE_BEGINNINGS.test(label)) return unsound(part, 'has other bytes')
  const mediaType = found ?? part.mediaType
  if (mediaType.startsWith('image/')) return { part: { type: 'image', data, mediaType } }
  const type = part.type === 'audio' && mediaType.startsWith('audio/') ? 'audio' : 'file'
  return { part: { ...part, type, data, mediaType } }
}

/** Types whose files always begin in a known way. */
const HAVE_BEGINNINGS = /^(?:image\/(?:png|jpeg|gif|webp|bmp)|application\/pdf)$/

function unsound(part: MediaPart, problem: string): SoundPart {
  const type = 'mediaType' in part ? ` of type \`${part.mediaType}\`` : ''
  return { part: null, problem: `The \`${part.type}\`${type} ${problem}.` }
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
  return `${title} (${bareType(mediaType)}):\n\n${textOfBytes(bytesOfBase64(data))}`
}

export function dataUrl(data: string, mediaType: string): string {
  return `data:${mediaType};base64,${data}`
}

/** Text in place of a part that the API does not accept, so that the model knows of it. */
export function omissionText(problem: string, place: 'result' | 'message' = 'result'): string {
  return `[Left out of this ${place}. ${problem}]`
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
