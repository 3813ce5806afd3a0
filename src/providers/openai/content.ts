import { HarnessError } from '../../contracts/errors.js'
import type { ContentPart } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'
import type * as Wire from 'openai/resources/responses/responses'

/** Kinds of input beside text that a model takes. */
export type Inputs = readonly ('image' | 'file' | 'audio')[]

/** What the Responses API takes: no audio, whatever the model. */
export const API_INPUTS: Inputs = ['image', 'file']

/** Content of a user message: plain text where it is nothing else. Throws `invalid_options` for what cannot be sent. */
export function userContent(content: readonly ContentPart[], inputs: Inputs): string | readonly JsonObject[] {
  return textIn(content) ?? content.map((part) => wireContent(part, inputs) ?? refuse(part, inputs))
}

/**
 * Output of a tool: plain text where it is nothing else. What cannot be sent is named in its place, since the model
 * shall know that there was more.
 */
export function toolOutput(content: string | readonly ContentPart[], inputs: Inputs): string | readonly JsonObject[] {
  if (typeof content === 'string') return content
  return textIn(content) ?? content.map((part) => wireContent(part, inputs) ?? textBlock(missing(part)))
}

function textIn(content: readonly ContentPart[]): string | undefined {
  const [first, ...others] = content
  if (first === undefined) return ''
  return first.type === 'text' && others.length === 0 ? first.text : undefined
}

function wireContent(part: ContentPart, inputs: Inputs): JsonObject | undefined {
  if (part.type === 'text') return textBlock(part.text)
  const kind = kindOf(part)
  if (kind === undefined || !inputs.includes(kind)) return undefined
  if (part.type === 'file' && kind === 'file') return fileBlock(part)
  return imageBlock('url' in part ? part.url : dataUrl(part))
}

/** The kind of input that a part is to the API; undefined for what it has no place for. */
function kindOf(part: Exclude<ContentPart, { type: 'text' }>): 'image' | 'file' | undefined {
  if (part.type === 'image') return 'image'
  const family = part.mediaType.split('/')[0]
  if (part.type === 'audio' || family === 'audio' || family === 'video') return undefined
  return family === 'image' ? 'image' : 'file'
}

function textBlock(text: string): JsonObject {
  return { type: 'input_text', text } satisfies Wire.ResponseInputText
}

function imageBlock(url: string): JsonObject {
  return { type: 'input_image', image_url: url, detail: 'auto' } satisfies Wire.ResponseInputImage
}

function fileBlock(part: Extract<ContentPart, { type: 'file' }>): JsonObject {
  const filename = part.name ?? defaultName(part.mediaType)
  return { type: 'input_file', filename, file_data: dataUrl(part) } satisfies Wire.ResponseInputFile
}

function dataUrl({ data, mediaType }: { readonly data: string; readonly mediaType: string }): string {
  return `data:${mediaType};base64,${data}`
}

/** The API reads the kind of a file off its name too. */
function defaultName(mediaType: string): string {
  const subtype = /^[^/]*\/(?:x-)?([a-z0-9]+)/i.exec(mediaType)?.[1]?.toLowerCase() ?? 'bin'
  return `file.${EXTENSIONS.get(subtype) ?? subtype}`
}

const EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ['plain', 'txt'],
  ['markdown', 'md'],
  ['javascript', 'js'],
])

function refuse(part: ContentPart, inputs: Inputs): never {
  const accepted = ['text', ...inputs].map((kind) => `\`${kind}\``).join(', ')
  const message = `Expected \`content\` that this model takes over the Responses API (${accepted}), got ${named(part)}.`
  throw new HarnessError('invalid_options', message)
}

function missing(part: ContentPart): string {
  return `[The tool also returned ${named(part)}, which cannot be shown to this model.]`
}

function named(part: ContentPart): string {
  return 'mediaType' in part ? `\`${part.type}\` (${part.mediaType})` : `\`${part.type}\``
}
