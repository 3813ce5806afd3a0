import { HarnessError } from '../../contracts/errors.js'
import type { ContentPart } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'
import type { ChatDialect, MediaTypes } from './dialect.js'
import { stringIn } from './read.js'

/** What a model takes, as far as it is known. */
export interface ContentRules {
  readonly provider: string
  readonly dialect: ChatDialect
  /** Kinds of part beside text; undefined: all. */
  readonly inputs: readonly ContentPart['type'][] | undefined
}

/** The content of a user message. Throws `invalid_options` for what the model does not take. */
export function userContent(content: readonly ContentPart[], rules: ContentRules): string | readonly JsonObject[] {
  const filled = content.filter((part) => part.type !== 'text' || part.text !== '')
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

/** A part as the API takes it, or why it does not. */
type WirePart = { readonly part: JsonObject } | { readonly part: null; readonly problem: string }

export function wirePart(part: ContentPart, rules: ContentRules): WirePart {
  if (part.type === 'text') return { part: textPart(part.text) }
  if (part.type === 'file' && isTextFile(part.mediaType)) return { part: textPart(textOfFile(part)) }
  const problem = problemOf(part, rules)
  return problem === undefined ? { part: mediaPart(part) } : { part: null, problem }
}

type MediaPart = Exclude<ContentPart, { readonly type: 'text' }>

function mediaPart(part: MediaPart): JsonObject {
  switch (part.type) {
    case 'image':
      return { type: 'image_url', image_url: { url: 'url' in part ? part.url : dataUrl(part) } }
    case 'file':
      return { type: 'file', file: { filename: part.name ?? unnamedFile(part.mediaType), file_data: dataUrl(part) } }
    case 'audio':
      return { type: 'input_audio', input_audio: { data: part.data, format: audioFormat(part.mediaType) } }
  }
}

/** Why the model does not take `part`. */
function problemOf(part: MediaPart, { provider, dialect, inputs }: ContentRules): string | undefined {
  if (!dialect.contentLists || inputs?.includes(part.type) === false) {
    return `The model of \`${provider}\` takes no \`${part.type}\`.`
  }
  if (!('mediaType' in part)) return undefined
  const types = typesOf(part, dialect)
  if (types === 'any' || types.includes(bare(part.mediaType))) return undefined
  const taken = types.map((type) => `\`${type}\``).join(', ')
  return `The model of \`${provider}\` takes ${taken} as \`${part.type}\`, got \`${part.mediaType}\`.`
}

function typesOf(part: MediaPart, { imageTypes, fileTypes, audioTypes }: ChatDialect): MediaTypes {
  switch (part.type) {
    case 'image':
      return imageTypes
    case 'file':
      return fileTypes
    case 'audio':
      return audioTypes
  }
}

function dataUrl({ data, mediaType }: { readonly data: string; readonly mediaType: string }): string {
  return `data:${bare(mediaType)};base64,${data}`
}

const TEXT_TYPE = /^text\/|^application\/(?:json|xml|yaml|x-yaml|toml|javascript|x-sh|sql)$|\+(?:json|xml)$/

function isTextFile(mediaType: string): boolean {
  return TEXT_TYPE.test(bare(mediaType))
}

/** Chat completions take text files as text only. */
function textOfFile({ data, mediaType, name }: ContentPart & { readonly type: 'file' }): string {
  const title = name === undefined ? 'A file' : `The file \`${name}\``
  return `${title} (${bare(mediaType)}):\n\n${Buffer.from(data, 'base64').toString()}`
}

function unnamedFile(mediaType: string): string {
  return `file.${subtype(mediaType)}`
}

const AUDIO_FORMATS: ReadonlyMap<string, string> = new Map([
  ['audio/wav', 'wav'],
  ['audio/mpeg', 'mp3'],
  ['audio/mp4', 'm4a'],
])

function audioFormat(mediaType: string): string {
  return AUDIO_FORMATS.get(bare(mediaType)) ?? subtype(mediaType)
}

function subtype(mediaType: string): string {
  return bare(mediaType).replace(/^.*\//, '').replace(/^x-/, '')
}

const SAME_TYPES: ReadonlyMap<string, string> = new Map([
  ['image/jpg', 'image/jpeg'],
  ['audio/mp3', 'audio/mpeg'],
  ['audio/x-wav', 'audio/wav'],
  ['audio/wave', 'audio/wav'],
  ['audio/vnd.wave', 'audio/wav'],
])

/** A media type by its one name, without parameters. */
function bare(mediaType: string): string {
  const type = mediaType.replace(/;.*$/s, '').trim().toLowerCase()
  return SAME_TYPES.get(type) ?? type
}
