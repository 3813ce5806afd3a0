import type * as Wire from 'openai/resources/responses/responses'
import { resultForModel } from '#contracts/entry.js'
import type {
  AssistantEntry,
  AssistantPart,
  ToolCallPart,
  ToolEntry,
  TranscriptEntry,
  UserEntry,
  ContentPart,
  GivenPart,
} from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { acceptedCallId, acceptedName, customInput } from '../wire/call-ids.js'
import {
  asGiven,
  bareType,
  thinkingText,
  dataUrl,
  omissionText,
  soundPart,
  wellFormedEscapes,
} from '../wire/content.js'
import type { FilePart } from '../wire/content.js'
import { foreignText, textWithSources } from '../hosted/foreign-parts.js'
import { membersWith, objectsIn, without } from '../wire/wire-fields.js'
import { compactedItems } from './compaction.js'
import { PROVIDER } from './models.js'
import type { Inputs } from './models.js'
import { nativeDataOf } from './output-items.js'
import type { NativeData } from './output-items.js'

interface EncodeOptions {
  /** Reasoning items are sent back unchanged; otherwise only their text, if any (RF-07). */
  readonly reasoning: boolean
  readonly inputs: Inputs
}

/**
 * Input items for `entries`. The server is assumed to store nothing, so items are sent with their content. Only reasoning
 * items keep the id of the reply: servers reject ids of items that they did not store. Replies of other providers are
 * sent as plain text.
 */
export function encodeEntries(entries: readonly TranscriptEntry[], options: EncodeOptions): readonly JsonObject[] {
  const calls = new Map<string, NativeData>()
  return entries.flatMap((entry) => {
    switch (entry.role) {
      case 'user':
        return encodeMessage(entry, options.inputs)
      case 'assistant':
        return encodeReply(entry, options, calls)
      case 'tool':
        return [encodeResult(entry, options.inputs, calls.get(entry.callId))]
    }
  })
}

/** A conversation that this provider has compacted comes as its items, before the rest of the message. */
function encodeMessage({ content, native }: UserEntry, inputs: Inputs): readonly JsonObject[] {
  const items = native === undefined ? null : compactedItems(native)
  if (items === null) return [inputMessage('user', userContent(content, inputs))]
  const rest = content.slice(1)
  return rest.length === 0 ? items : [...items, inputMessage('user', userContent(rest, inputs))]
}

function encodeReply(
  { parts }: AssistantEntry,
  { reasoning }: EncodeOptions,
  calls: Map<string, NativeData>,
): readonly JsonObject[] {
  const items = new ItemList()
  // The API rejects reasoning at the end of a reply, as in one that was cut off.
  const followed = parts.findLastIndex((part) => part.type !== 'reasoning')
  for (const [index, part] of parts.entries()) {
    const native = nativeDataOf(part)
    if (part.type === 'tool_call' && native !== undefined) calls.set(part.callId, native)
    if (native?.kind === 'block') items.addBlock(native, part)
    else if (part.type === 'text') items.addText(part.annotations === undefined ? part.text : textWithSources(part))
    else if (part.type === 'tool_call') items.add(encodeCall(part, native?.item))
    else if (part.type === 'opaque') items.add(native?.item)
    else if (part.type === 'hosted' || part.type === 'image')
      if (native === undefined) items.addText(foreignText(part))
      else items.add(part.type === 'image' && 'data' in part ? { ...native.item, result: part.data } : native.item)
    else items.addReasoning(part.text, reasoning && index < followed ? replayableItem(native?.item) : undefined)
  }
  return items.all
}

/** The items of one reply. The blocks of a message are joined again. */
class ItemList {
  readonly all: JsonObject[] = []
  /** Content of the message that the next block may belong to. */
  #open: JsonObject[] | null = null

  add(item: JsonObject | undefined): void {
    if (item === undefined) return
    this.all.push(item)
    this.#open = null
  }

  addText(text: string): void {
    if (text !== '') this.add(inputMessage('assistant', text))
  }

  addReasoning(text: string, item: JsonObject | undefined): void {
    if (item !== undefined) this.add(item)
    else if (text !== '') this.addText(thinkingText(text))
  }

  addBlock({ block, message: opening }: NativeData & { kind: 'block' }, part: AssistantPart): void {
    if (opening !== undefined || this.#open === null) {
      const content: JsonObject[] = []
      this.add({ type: 'message', role: 'assistant', ...withoutNulls(without(opening ?? {}, 'id', 'status')), content })
      this.#open = content
    }
    this.#open.push(part.type === 'text' ? outputTextBlock(part.text, block) : block)
  }
}

/** A text block as received, with its citations. Servers require the list of them, and reject an empty `logprobs`. */
function outputTextBlock(text: string, block: JsonObject): JsonObject {
  const { annotations, logprobs } = block
  return {
    ...without(block, 'logprobs'),
    type: 'output_text',
    text,
    annotations: Array.isArray(annotations) ? annotations : [],
    ...(Array.isArray(logprobs) && logprobs.length > 0 && { logprobs }),
  }
}

function inputMessage(role: 'user' | 'assistant', content: string | readonly JsonObject[]): JsonObject {
  return { role, content }
}

/** Servers send null for absent fields, and not all of them accept it back. */
function withoutNulls(item: JsonObject): JsonObject {
  return membersWith(item, (value) => value !== null)
}

/**
 * A reasoning item with its content, encrypted or in plain text; undefined for a mere reference to stored content. The
 * API rejects `status` on input.
 */
function replayableItem(item: JsonObject | undefined): JsonObject | undefined {
  if (item === undefined) return undefined
  const { id, encrypted_content: encrypted, summary } = item
  const content = objectsIn(item['content']) as readonly JsonObject[]
  const isEncrypted = typeof encrypted === 'string' && encrypted !== ''
  if (!isEncrypted && content.length === 0) return undefined
  return {
    type: 'reasoning',
    ...(typeof id === 'string' && { id }),
    summary: Array.isArray(summary) ? summary : [],
    ...(content.length > 0 && { content }),
    ...(isEncrypted && { encrypted_content: encrypted }),
  }
}

const LONGEST_NAME = 128

/** Any string of up to 64 characters. */
const CALL_ID = /^[^]{0,64}$/

function encodeCall(part: ToolCallPart, item: JsonObject | undefined): JsonObject {
  const name = acceptedName(part.name, LONGEST_NAME)
  const own = {
    ...withoutNulls(without(item ?? {}, 'id', 'status', 'type')),
    call_id: acceptedCallId(part.callId, CALL_ID),
    name,
  }
  if (isCustom(item)) return { type: 'custom_tool_call', ...own, input: customInput(part.arguments) }
  return {
    type: 'function_call',
    ...own,
    arguments: part.arguments === '' ? '{}' : wellFormedEscapes(part.arguments),
  } satisfies Wire.ResponseFunctionToolCall
}

function encodeResult(entry: ToolEntry, inputs: Inputs, native: NativeData | undefined): JsonObject {
  const item = native?.kind === 'item' ? native.item : undefined
  const type = isCustom(item) ? 'custom_tool_call_output' : 'function_call_output'
  const output = toolOutput(resultForModel(entry, 'prefix'), inputs)
  // The result of a call by a program of the model goes back to that program.
  const caller = isObject(item?.['caller']) ? { caller: item['caller'] } : {}
  return { type, call_id: acceptedCallId(entry.callId, CALL_ID), output, ...caller }
}

function isCustom(item: JsonObject | undefined): boolean {
  return item?.['type'] === 'custom_tool_call'
}

/** Content of a user message: a string if it is one text. Throws `invalid_options` for unsupported content. */
function userContent(content: readonly ContentPart[], inputs: Inputs): string | readonly JsonObject[] {
  const blockOf = (given: ContentPart): JsonObject => {
    const stored = storedBlock(given)
    if (stored !== null) return stored
    const part = asGiven(given)
    const sound = soundPart(part)
    const block = wireContent(sound.part ?? part, inputs) ?? rejectPart(part, inputs)
    return sound.part === null ? inputTextBlock(omissionText(sound.problem, 'message')) : block
  }
  return onlyText(content) ?? content.map(blockOf)
}

/** Output of a tool: a string if it is one text. Unsupported content is replaced by a sentence, for the model to know. */
function toolOutput(content: string | readonly ContentPart[], inputs: Inputs): string | readonly JsonObject[] {
  if (typeof content === 'string') return content
  const blockOf = (given: ContentPart): JsonObject => {
    const stored = storedBlock(given)
    if (stored !== null) return stored
    const part = asGiven(given)
    const sound = soundPart(part)
    const known = sound.part ?? part
    const block = wireContent(known, inputs) ?? inputTextBlock(missingMediaText(known))
    return sound.part === null && block['type'] !== 'input_text' ? inputTextBlock(omissionText(sound.problem)) : block
  }
  return onlyText(content) ?? content.map(blockOf)
}

/** A file that this provider has stored, by its id; null for any other part. */
function storedBlock(part: ContentPart): JsonObject | null {
  if (!('id' in part) || part.provider !== PROVIDER) return null
  const { id, mediaType = '' } = part
  if (!mediaType.startsWith('image/')) return { type: 'input_file', file_id: id } satisfies Wire.ResponseInputFile
  return { type: 'input_image', file_id: id, detail: 'auto' } satisfies Wire.ResponseInputImage
}

function onlyText(content: readonly ContentPart[]): string | undefined {
  const [first, ...others] = content
  if (first === undefined) return ''
  return first.type === 'text' && others.length === 0 ? first.text : undefined
}

function wireContent(part: GivenPart, inputs: Inputs): JsonObject | undefined {
  if (part.type === 'text') return inputTextBlock(part.text)
  const kind = inputKind(part)
  if (kind === undefined || !inputs.includes(kind)) return undefined
  if (part.type === 'file') return fileBlock(part)
  const url = 'url' in part ? part.url : dataUrl(part.data, part.mediaType)
  return { type: 'input_image', image_url: url, detail: 'auto' } satisfies Wire.ResponseInputImage
}

/** The kind of input that a part is for the API; undefined if it has none. */
function inputKind(part: Exclude<GivenPart, { type: 'text' }>): 'image' | 'file' | undefined {
  if ('url' in part) return 'image'
  const [family] = part.mediaType.split('/')
  if (part.type === 'image') return IMAGE_TYPES.has(bareType(part.mediaType)) ? 'image' : undefined
  return part.type === 'audio' || family === 'audio' || family === 'video' ? undefined : 'file'
}

const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif'])

function inputTextBlock(text: string): JsonObject {
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

function rejectPart(part: ContentPart, inputs: Inputs): never {
  const accepted = ['text', ...inputs].map((kind) => `\`${kind}\``).join(', ')
  const message = `Expected \`content\` that this model supports in the Responses API (${accepted}), got ${partName(part)}.`
  throw new HarnessError('invalid_options', message)
}

function missingMediaText(part: ContentPart): string {
  return `[The tool also returned ${partName(part)}, which cannot be shown to this model.]`
}

function partName(part: ContentPart): string {
  return 'mediaType' in part ? `\`${part.type}\` (${part.mediaType})` : `\`${part.type}\``
}
