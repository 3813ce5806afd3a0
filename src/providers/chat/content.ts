import { HarnessError } from '../../contracts/errors.js'
import type { ContentPart } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'
import { bareType, dataUrl, hasContent, isTextType, textOfFile } from '../wire/content.js'
import { stringIn } from '../wire/read.js'
import type { ChatDialect } from './dialect.js'

/** The known inputs of a model. */
export interface ContentRules {
  readonly provider: string
  readonly dialect: ChatDialect
  /** Kinds of input other than text; undefined: all. */
  readonly inputs: readonly ContentPart['type'][] | undefined
}

/** The content of a user message. Throws `invalid_options` for content that the model does not support. */
export function userContent(content: readonly ContentPart[], rules: ContentRules): string | readonly JsonObject[] {
  const filled = content.filter(hasContent)
  const [only, ...others] = filled
  if (only === undefined) return ''
  if (only.type === 'text' && others.length === 0) return only.text
  const parts = filled.map((part) => {
    const form = wirePart(part, rules)
    if (form.part === null) throw new HarnessError('invalid_options', form.problem)
    return form.part
  })
  return rules.dialect.contentLists ? parts : parts.map((part) => stringIn(part['text'])).join('\n\n')
}

export function textPart(text: string): JsonObject {
  return { type: 'text', text }
}

/** A part in the form of the API, or the reason why it has none. */
type WirePart = { readonly part: JsonObject } | { readonly part: null; readonly problem: string }

export function wirePart(part: ContentPart, rules: ContentRules): WirePart {
  if (part.type === 'text') return { part: textPart(part.text) }
  if (part.type === 'file' && isTextType(part.mediaType)) return { part: textPart(textOfFile(part)) }
  const problem = problemOf(part, rules)
  return problem === undefined ? { part: mediaPart(part) } : { part: null, problem }
}

type MediaPart = Exclude<ContentPart, { readonly type: 'text' }>

function mediaPart(part: MediaPart): JsonObject {
  if ('url' in part) return { type: 'image_url', image_url: { url: part.url } }
  const { data } = part
  const type = bareType(part.mediaType)
  switch (part.type) {
    case 'image':
      return { type: 'image_url', image_url: { url: dataUrl(data, type) } }
    case 'file':
      return { type: 'file', file: { filename: part.name ?? `file.${subtype(type)}`, file_data: dataUrl(data, type) } }
    case 'audio':
      return { type: 'input_audio', input_audio: { data, format: AUDIO_FORMATS.get(type) ?? subtype(type) } }
  }
}

/** The reason why the model does not support `part`. */
function problemOf(part: MediaPart, { provider, dialect, inputs }: ContentRules): string | undefined {
  if (!dialect.contentLists || inputs?.includes(part.type) === false) {
    return `The model of \`${provider}\` does not support \`${part.type}\`.`
  }
  if (!('mediaType' in part)) return undefined
  const types = { image: dialect.imageTypes, file: dialect.fileTypes, audio: dialect.audioTypes }[part.type]
  if (types === 'any' || types.includes(bareType(part.mediaType))) return undefined
  const supported = types.map((type) => `\`${type}\``).join(', ')
  return `The model of \`${provider}\` supports ${supported} as \`${part.type}\`, got \`${part.mediaType}\`.`
}

const AUDIO_FORMATS: ReadonlyMap<string, string> = new Map([
  ['audio/wav', 'wav'],
  ['audio/mpeg', 'mp3'],
  ['audio/mp4', 'm4a'],
])

function subtype(bareType: string): string {
  return bareType.replace(/^.*\//, '').replace(/^x-/, '')
}
