import { HarnessError } from '../../contracts/errors.js'
import type { ContentPart } from '../../contracts/entry.js'
import type { PromptPart } from './wire.js'
import type { FileSource, PromptFile, Version } from './versions.js'

/** What a model takes, as far as it is known. */
export interface ContentRules {
  /** Name of the model's provider, for messages. */
  readonly provider: string
  readonly version: Version
  /** Kinds of part beside text; undefined: all. */
  readonly inputs: readonly ContentPart['type'][] | undefined
}

/** Parts of a user message. Throws `invalid_options` for what the model is known not to take. */
export function userParts(content: readonly ContentPart[], rules: ContentRules): PromptPart[] {
  return content.filter(hasContent).map((part) => {
    const form = formOf(part, rules)
    if (form.kind === 'refused') throw new HarnessError('invalid_options', form.problem)
    return form.kind === 'text' ? textPart(form.text) : filePart(form.file, rules.version)
  })
}

/** A part of a message as the specification can say it, or why the model does not take it. */
type PartForm =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly file: PromptFile }
  | { readonly kind: 'refused'; readonly problem: string }

/** Text files are text: few providers take them as files. */
export function formOf(part: ContentPart, { provider, version, inputs }: ContentRules): PartForm {
  if (part.type === 'text') return { kind: 'text', text: part.text }
  if (part.type === 'file' && isTextFile(part.mediaType)) return { kind: 'text', text: textOfFile(part) }
  if (inputs?.includes(part.type) === false) {
    return { kind: 'refused', problem: `The model of \`${provider}\` takes no \`${part.type}\`.` }
  }
  if ('url' in part) return { kind: 'file', file: fileAt(part.url, version) }
  const { data, mediaType } = part
  const name = part.type === 'file' && part.name !== undefined ? { name: part.name } : {}
  return { kind: 'file', file: { source: { data }, mediaType: bare(mediaType), ...name } }
}

/** Empty texts are refused by some APIs, and say nothing. */
export function hasContent(part: ContentPart): boolean {
  return part.type !== 'text' || part.text !== ''
}

export function textPart(text: string): PromptPart {
  return { type: 'text', text }
}

export function filePart({ source, mediaType, name }: PromptFile, version: Version): PromptPart {
  return { type: 'file', data: version.fileData(source), mediaType, ...(name !== undefined && { filename: name }) }
}

const DATA_URL = /^data:([^;,]+)[^,]*;base64,(.*)$/s

function fileAt(url: string, version: Version): PromptFile {
  const [, mediaType, data] = DATA_URL.exec(url) ?? []
  if (mediaType !== undefined && data !== undefined) return { source: { data }, mediaType: bare(mediaType) }
  if (!URL.canParse(url)) {
    throw new HarnessError(
      'invalid_options',
      `Expected the \`url\` of an image to be a URL, got \`${url.slice(0, 100)}\`.`,
    )
  }
  const source: FileSource = { url }
  return { source, mediaType: version.anyOf('image') }
}

const TEXT_TYPE = /^text\/|^application\/(?:json|xml|yaml|x-yaml|toml|javascript|x-sh|sql)$|\+(?:json|xml)$/

function isTextFile(mediaType: string): boolean {
  return TEXT_TYPE.test(bare(mediaType))
}

function textOfFile({ data, mediaType, name }: ContentPart & { readonly type: 'file' }): string {
  const title = name === undefined ? 'A file' : `The file \`${name}\``
  return `${title} (${bare(mediaType)}):\n\n${Buffer.from(data, 'base64').toString()}`
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
