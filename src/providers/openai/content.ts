import type * as Wire from 'openai/resources/responses/responses'
import { HarnessError } from '../../contracts/errors.js'
import type { ContentPart } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'
import { dataUrl } from '../wire/content.js'
import type { FilePart } from '../wire/content.js'

/** Kinds of input other than text. */
export type Inputs = readonly ('image' | 'file' | 'audio')[]

/** The inputs that the Responses API supports: no audio, with any model. */
export const API_INPUTS: Inputs = ['image', 'file']

/** Content of a user message: a string if it is one text. Throws `invalid_options` for unsupported content. */
export function userContent(content: readonly ContentPart[], inputs: Inputs): string | readonly JsonObject[] {
  return onlyText(content) ?? content.map((part) => wireContent(part, inputs) ?? reject(part, inputs))
}

/** Output of a tool: a string if it is one text. Unsupported content is replaced by a sentence, for the model to know. */
export function toolOutput(content: string | readonly ContentPart[], inputs: Inputs): string | readonly JsonObject[] {
  if (typeof content === 'string') return content
  return onlyText(content) ?? content.map((part) => wireContent(part, inputs) ?? textBlock(missing(part)))
}

function onlyText(content: readonly ContentPart[]): string | undefined {
  const [first, ...others] = content
  if (first === undefined) return ''
  return first.type === 'text' && others.length === 0 ? first.text : undefined
}

function wireContent(part: ContentPart, inputs: Inputs): JsonObject | undefined {
  if (part.type === 'text') return textBlock(part.text)
  const kind = kindOf(part)
  if (kind === undefined || !inputs.includes(kind)) return undefined
  if (part.type === 'file' && kind === 'file') return fileBlock(part)
  const url = 'url' in part ? part.url : dataUrl(part.data, part.mediaType)
  return { type: 'input_image', image_url: url, detail: 'auto' } satisfies Wire.ResponseInputImage
}

/** The kind of input that a part is for the API; undefined if it has none. */
function kindOf(part: Exclude<ContentPart, { type: 'text' }>): 'image' | 'file' | undefined {
  if (part.type === 'image') return 'image'
  const family = part.mediaType.split('/')[0]
  if (part.type === 'audio' || family === 'audio' || family === 'video') return undefined
  return family === 'image' ? 'image' : 'file'
}

function textBlock(text: string): JsonObject {
  return { type: 'input_text', text } satisfies Wire.ResponseInputText
}

function fileBlock({ data, mediaType, name }: FilePart): JsonObject {
  const filename = name ?? defaultName(mediaType)
  return { type: 'input_file', filename, file_data: dataUrl(data, mediaType) } satisfies Wire.ResponseInputFile
}

/** The API also infers the type of a file from its name. */
function defaultName(mediaType: string): string {
  const subtype = /^[^/]*\/(?:x-)?([a-z0-9]+)/i.exec(mediaType)?.[1]?.toLowerCase() ?? 'bin'
  return `file.${EXTENSIONS.get(subtype) ?? subtype}`
}

const EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ['plain', 'txt'],
  ['markdown', 'md'],
  ['javascript', 'js'],
])

function reject(part: ContentPart, inputs: Inputs): never {
  const accepted = ['text', ...inputs].map((kind) => `\`${kind}\``).join(', ')
  const message = `Expected \`content\` that this model supports in the Responses API (${accepted}), got ${named(part)}.`
  throw new HarnessError('invalid_options', message)
}

function missing(part: ContentPart): string {
  return `[The tool also returned ${named(part)}, which cannot be shown to this model.]`
}

function named(part: ContentPart): string {
  return 'mediaType' in part ? `\`${part.type}\` (${part.mediaType})` : `\`${part.type}\``
}
