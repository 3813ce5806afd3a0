import type {
  AssistantEntry,
  AssistantPart,
  ReasoningPart,
  ToolCallPart,
  ToolEntry,
  TranscriptEntry,
  UserEntry,
  ContentPart,
  GivenPart,
} from '#contracts/entry.js'
import { resultForModel } from '#contracts/entry.js'
import type { ToolDefinition } from '#core/model-session.js'
import { HarnessError } from '#contracts/errors.js'
import { bytesOfBase64, textOfBytes } from '#util/bytes.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { acceptedCallId, acceptedName, argumentsObject } from '../wire/call-ids.js'
import {
  textWithin,
  thinkingText,
  bareType,
  filledParts,
  isTextType,
  omissionText,
  soundPart,
} from '../wire/content.js'
import type { FilePart } from '../wire/content.js'
import { foreignText, textWithSources } from '../hosted/foreign-parts.js'
import { stringIn, without } from '../wire/wire-fields.js'
import { withKnownTools } from '../hosted/known-tools.js'
import { compactionBlock } from './compaction.js'
import { PROVIDER } from './models.js'
import type {
  ThinkingBlockParam,
  ToolResultBlockParam,
  ToolUseBlockParam,
  DocumentBlockParam,
  ImageBlockParam,
  TextBlockParam,
} from '@anthropic-ai/sdk/resources/messages'

/**
 * The messages of a conversation. The results of a batch, with the notice of the harness after them, are one message.
 * Entries without content for the API are omitted, since it rejects empty messages. `thinking`: the model thinks now;
 * otherwise the API rejects thinking blocks in the reply that it continues, and they become text (RF-11, RF-13). `tools`: those of the
 * request, to which earlier searches may refer.
 */
export function encodeMessages(entries: readonly TranscriptEntry[], rules: MessageRules): readonly JsonObject[] {
  const messages: JsonObject[] = []
  let batch: Batch | null = null
  for (const entry of entries) {
    if (entry.role === 'tool') {
      batch ??= { results: [], media: [] }
      addResult(batch, entry)
      continue
    }
    const notice = batch !== null && entry.role === 'user' && entry.notice === true ? userBlocks(entry.content) : null
    if (batch !== null) messages.push(batchMessage(batch, notice ?? []))
    batch = null
    if (notice !== null) continue
    const content = entry.role === 'user' ? userContent(entry) : assistantBlocks(entry, rules)
    if (content.length > 0) messages.push({ role: entry.role, content })
  }
  if (batch !== null) messages.push(batchMessage(batch, []))
  return messages
}

/** The parts of a request that its messages depend on. */
export interface MessageRules {
  readonly thinking: boolean
  readonly tools: readonly ToolDefinition[]
}

/** The results of a reply's calls. */
interface Batch {
  readonly results: JsonObject[]
  /** Content that the API rejects within a result, for the end of the message. */
  readonly media: JsonObject[]
}

/** A result that is an error may contain text only. */
function addResult({ results, media }: Batch, entry: ToolEntry): void {
  const { callId, isError } = entry
  const content = resultForModel(entry, 'flag')
  const blocks = typeof content === 'string' ? [] : resultBlocks(content)
  const ofText = typeof content === 'string' && content.trim() !== '' ? content : []
  const inside = typeof content === 'string' ? ofText : isError ? blocks.filter(isTextBlock) : blocks
  if (isError) media.push(...blocks.filter((block) => !isTextBlock(block)))
  results.push({
    ...({ type: 'tool_result', tool_use_id: acceptedCallId(callId, CALL_ID) } satisfies ToolResultBlockParam),
    ...(inside.length > 0 && { content: inside }),
    ...(isError && { is_error: true }),
  })
}

const CALL_ID = /^[a-zA-Z0-9_-]+$/

function isTextBlock({ type }: JsonObject): boolean {
  return type === 'text'
}

function batchMessage({ results, media }: Batch, notice: readonly JsonObject[]): JsonObject {
  return { role: 'user', content: [...results, ...media, ...notice] }
}

function userContent({ content, notice, native }: UserEntry): string | readonly JsonObject[] {
  const compaction = native === undefined ? null : compactionBlock(native)
  if (compaction !== null) return [compaction, ...userBlocks(content.slice(1))]
  const [only, ...others] = content
  const isPlain = notice !== true && only?.type === 'text' && others.length === 0 && only.text.trim() !== ''
  return isPlain ? only.text : userBlocks(content)
}

/**
 * The blocks of an earlier reply. This provider's parts are sent back unchanged, those of other providers as far as the
 * API has a form for them.
 */
function assistantBlocks({ parts }: AssistantEntry, rules: MessageRules): readonly JsonObject[] {
  const blocks: JsonObject[] = []
  let hasText = false
  let hasBlank = false
  for (const part of parts) {
    const block = assistantBlock(part, rules)
    if (block === null) continue
    blocks.push(block)
    if (block['type'] !== 'text') continue
    if (stringIn(block['text']).trim() === '') hasBlank = true
    else hasText = true
  }
  // The API rejects a text of white space, unless the message has another text.
  return hasBlank && !hasText ? blocks.filter((block) => !isTextBlock(block)) : blocks
}

function assistantBlock(part: AssistantPart, { thinking, tools }: MessageRules): JsonObject | null {
  const native = part.native?.provider === PROVIDER && isObject(part.native.data) ? part.native.data : null
  switch (part.type) {
    case 'text':
      if (part.text === '') return null
      return native === null && part.annotations !== undefined
        ? textBlock(textWithSources(part))
        : { ...textBlock(part.text), ...citations(native) }
    case 'reasoning':
      return (thinking ? thinkingBlock(part, native) : null) ?? filledBlock(part.text, thinkingText)
    case 'tool_call':
      return toolUse(part, native)
    case 'hosted':
    case 'image':
      return native ?? filledBlock(foreignText(part))
    case 'opaque':
      return native === null ? filledBlock(textWithin(part)) : withKnownTools(native, tools)
  }
}

function filledBlock(text: string, format: (text: string) => string = String): JsonObject | null {
  return text === '' ? null : textBlock(format(text))
}

/** Citations in the form of a request, which has no `file_id`. */
function citations(native: JsonObject | null): JsonObject {
  const given = native?.['citations']
  if (!Array.isArray(given)) return {}
  const list = given as readonly JsonValue[]
  return { citations: list.map((citation) => (isObject(citation) ? without(citation, 'file_id') : citation)) }
}

/** The signed or encrypted form of reasoning, unchanged. */
function thinkingBlock({ text }: ReasoningPart, native: JsonObject | null): JsonObject | null {
  if (native?.['type'] === 'redacted_thinking') return native
  const signature = native?.['signature']
  if (typeof signature !== 'string') return null
  return { ...native, ...({ type: 'thinking', thinking: text, signature } satisfies ThinkingBlockParam) }
}

const LONGEST_NAME = 128

/** The part's own id, name and arguments take precedence: the tool boundary may have repaired them. */
function toolUse({ callId, name, arguments: text }: ToolCallPart, native: JsonObject | null): JsonObject {
  const block = {
    type: 'tool_use',
    id: acceptedCallId(callId, CALL_ID),
    name: acceptedName(name, LONGEST_NAME),
    input: argumentsObject(text),
  } as const
  return { ...native, ...(block satisfies ToolUseBlockParam) }
}

/** Blocks of a user message. Throws `invalid_options` for content that the API does not support. */
function userBlocks(content: readonly ContentPart[]): readonly JsonObject[] {
  return blocksOf(content, (part) => {
    const sound = soundPart(part)
    const form = contentBlock(sound.part ?? part)
    if (form.block === null) throw new HarnessError('invalid_options', form.problem)
    return sound.part === null ? textBlock(omissionText(sound.problem, 'message')) : form.block
  })
}

/** Blocks of a tool result. Content that the API does not support is replaced by a sentence. */
function resultBlocks(content: readonly ContentPart[]): readonly JsonObject[] {
  return blocksOf(content, (part) => {
    const sound = soundPart(part)
    const form = sound.part === null ? { block: null, problem: sound.problem } : contentBlock(sound.part)
    return form.block ?? textBlock(omissionText(form.problem))
  })
}

/** Files that this provider has stored are blocks by their ids. */
function blocksOf(content: readonly ContentPart[], blockOf: (part: GivenPart) => JsonObject): readonly JsonObject[] {
  return content.flatMap((part) => {
    if (!('id' in part) || part.provider !== PROVIDER) return filledParts([part]).map(blockOf)
    const type = part.mediaType?.startsWith('image/') === true ? 'image' : 'document'
    return [{ type, source: { type: 'file', file_id: part.id } }]
  })
}

export function textBlock(text: string): JsonObject {
  return { type: 'text', text } satisfies TextBlockParam
}

/** A part in the form of the API, or the reason why it has none. */
type Form = { readonly block: JsonObject } | { readonly block: null; readonly problem: string }

const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'] as const

function contentBlock(part: GivenPart): Form {
  switch (part.type) {
    case 'text':
      return { block: textBlock(part.text) }
    case 'image':
      return 'url' in part
        ? { block: { type: 'image', source: { type: 'url', url: part.url } } satisfies ImageBlockParam }
        : imageForm(part.data, part.mediaType)
    case 'file':
      return fileForm(part)
    case 'audio':
      return unsupportedForm('audio', part.mediaType)
  }
}

function imageForm(data: string, mediaType: string): Form {
  const type = bareType(mediaType)
  const media_type = IMAGE_TYPES.find((each) => each === type)
  if (media_type === undefined) return unsupportedForm('image', mediaType)
  return { block: { type: 'image', source: { type: 'base64', media_type, data } } satisfies ImageBlockParam }
}

function fileForm({ data, mediaType, name }: FilePart): Form {
  const type = bareType(mediaType)
  const title = name === undefined ? {} : { title: name }
  if (type === 'application/pdf') {
    const source = { type: 'base64', media_type: type, data } as const
    return { block: { type: 'document', source, ...title } satisfies DocumentBlockParam }
  }
  if (isTextType(type)) {
    const source = { type: 'text', media_type: 'text/plain', data: textOfBytes(bytesOfBase64(data)) } as const
    return { block: { type: 'document', source, ...title } satisfies DocumentBlockParam }
  }
  return unsupportedForm('file', mediaType)
}

function unsupportedForm(kind: ContentPart['type'], mediaType: string): Form {
  const supported = 'images (JPEG, PNG, GIF, WebP), PDF and text files'
  return { block: null, problem: `Anthropic's API supports ${supported}, got \`${kind}\` of type \`${mediaType}\`.` }
}
