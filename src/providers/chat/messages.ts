import { resultForModel } from '#contracts/entry.js'
import type {
  ToolEntry,
  TranscriptEntry,
  AssistantEntry,
  AssistantPart,
  ToolCallPart,
  ContentPart,
  GivenPart,
} from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { isObject, parseJson } from '#util/json.js'
import { acceptedName, customInput } from '../wire/call-ids.js'
import {
  bareType,
  omissionText,
  thinkingText,
  dataUrl,
  asGiven,
  filledParts,
  soundPart,
  isTextType,
  textOfFile,
  wellFormedEscapes,
} from '../wire/content.js'
import { foreignParts } from '../hosted/foreign-parts.js'
import { stringIn } from '../wire/wire-fields.js'
import { wireCallId, chatNativeOf } from './dialect.js'
import type { ChatDialect, ChatNative } from './dialect.js'

/** Messages for entries. The results of a batch stay together; their images and files follow after the last one. */
export function encodeEntries(entries: readonly TranscriptEntry[], rules: ChatContentRules): JsonObject[] {
  const messages: JsonObject[] = []
  let shown: JsonObject[] = []
  /** True if the calls of the current results are from a reply of this provider. */
  let isOwn = false
  for (const [index, entry] of entries.entries()) {
    switch (entry.role) {
      case 'user':
        messages.push({ role: 'user', content: userContent(entry.content, rules) })
        break
      case 'assistant':
        isOwn = entry.provider === rules.provider
        messages.push(assistantMessage(entry, rules, isOwn))
        break
      case 'tool': {
        const result = encodeResult(entry, wireCallId(entry.callId, rules.dialect.callIds, isOwn), rules)
        messages.push(result.message)
        shown.push(...result.shown)
        if (shown.length === 0 || entries[index + 1]?.role === 'tool') break
        messages.push({ role: 'user', content: shown })
        shown = []
      }
    }
  }
  return messages
}

interface EncodedResult {
  readonly message: JsonObject
  /** Images and files of the result, which a tool message cannot contain, after a text that names the call. */
  readonly shown: readonly JsonObject[]
}

function encodeResult(entry: ToolEntry, id: string, rules: ChatContentRules): EncodedResult {
  const content = resultForModel(entry, 'prefix')
  const message = (text: string): JsonObject => ({ role: 'tool', tool_call_id: id, content: text })
  if (typeof content === 'string') return { message: message(content), shown: [] }
  const texts: string[] = []
  const media: JsonObject[] = []
  for (const part of content) {
    const form = wirePart(part, rules)
    if (form.part === null) texts.push(omissionText(form.problem))
    else if (form.part['type'] === 'text') texts.push(stringIn(form.part['text']))
    else media.push(form.part)
  }
  if (media.length === 0) return { message: message(texts.join('\n\n')), shown: [] }
  const origin = textPart(`From the result of the call \`${id}\` of \`${entry.name}\`:`)
  return { message: message(texts.join('\n\n')), shown: [origin, ...media] }
}

/**
 * An assistant message. This provider's parts are sent back in their original form, as far as its dialect allows.
 * Reasoning of another provider becomes text, and its parts without text are omitted.
 */
function assistantMessage(entry: AssistantEntry, { provider, dialect }: ChatContentRules, isOwn: boolean): JsonObject {
  const parts = isOwn ? entry.parts : foreignParts(entry.parts)
  const placed = parts.map((part): Placed => ({ part, native: chatNativeOf(part, provider) }))
  const calls = placed.flatMap(({ part, native }) =>
    part.type === 'tool_call'
      ? [wireCall({ part, native, id: wireCallId(part.callId, dialect.callIds, isOwn) }, dialect)]
      : [],
  )
  const content = assistantContent(placed, dialect)
  const isEmpty = content === ''
  return {
    role: 'assistant',
    ...(!isEmpty && { content }),
    ...(isEmpty && withoutText(calls.length > 0, dialect)),
    ...requiredReasoning(dialect),
    ...(dialect.replaysReasoning && reasoningFields(placed)),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...replayedMembers(placed, dialect),
  }
}

interface Placed {
  readonly part: AssistantPart
  readonly native: ChatNative | undefined
}

function withoutText(hasCalls: boolean, { emptyContent }: ChatDialect): JsonObject {
  if (!hasCalls) return { content: '' }
  return emptyContent === 'null' ? { content: null } : {}
}

/** A string; or a list of blocks, if the server itself sent a block other than text. */
function assistantContent(placed: readonly Placed[], dialect: ChatDialect): string | readonly JsonValue[] {
  const isReplayed = ({ part, native }: Placed): boolean => {
    return (
      native?.form === 'block' && (part.type === 'opaque' || (part.type === 'reasoning' && dialect.replaysReasoning))
    )
  }
  if (!placed.some(isReplayed)) return joinedParagraphs(placed)
  return placed.flatMap((each): JsonValue[] => {
    if (isReplayed(each)) return [each.native?.value ?? {}]
    const text = joinedParagraphs([each])
    return text === '' ? [] : [textPart(text)]
  })
}

/** Texts are joined as the model wrote them; reasoning of other providers is separated by blank lines. */
function joinedParagraphs(placed: readonly Placed[]): string {
  const texts: string[] = []
  let isOpen = false
  for (const { part, native } of placed) {
    if (part.type === 'text' && part.text !== '') {
      texts.push(`${isOpen ? (texts.pop() ?? '') : ''}${part.text}`)
      isOpen = true
    }
    if (part.type === 'reasoning' && native === undefined && part.text !== '') {
      texts.push(thinkingText(part.text))
      isOpen = false
    }
  }
  return texts.join('\n\n')
}

/** Reasoning with its own field in the message: the details in order, and plain text under its original name. */
function reasoningFields(placed: readonly Placed[]): JsonObject {
  const fields: Record<string, JsonValue> = {}
  const details: JsonObject[] = []
  for (const { part, native } of placed) {
    if (part.type !== 'reasoning') continue
    if (native?.form === 'detail') details.push(native.value)
    if (native?.form === 'field') fields[native.value] = stringIn(fields[native.value]) + part.text
  }
  return { ...fields, ...(details.length > 0 && { reasoning_details: details }) }
}

function requiredReasoning({ requiredReasoningField }: ChatDialect): JsonObject {
  return requiredReasoningField === null ? {} : { [requiredReasoningField]: '' }
}

/** Other fields of the server's message that are sent back. */
function replayedMembers(placed: readonly Placed[], { replayedFields }: ChatDialect): JsonObject {
  const fields = placed.flatMap(({ native }) => (native?.form === 'message' ? Object.entries(native.value) : []))
  const wanted = fields.filter(([name]) => replayedFields === 'all' || replayedFields.includes(name))
  return Object.fromEntries(wanted.flatMap(([name, value]) => replayedField(name, value)))
}

/** Audio is sent as its id. A call of the server itself is omitted, since it would require a result. */
function replayedField(
  name: string,
  value: JsonValue | undefined,
): readonly (readonly [string, JsonValue | undefined])[] {
  if (name === 'tool_calls') return []
  if (name !== 'audio') return [[name, value]]
  const id = isObject(value) ? stringIn(value['id']) : ''
  return id === '' ? [] : [[name, { id }]]
}

interface NamedCall {
  readonly part: ToolCallPart
  readonly native: ChatNative | undefined
  /** As the server accepts it. */
  readonly id: string
}

function wireCall({ part, native, id }: NamedCall, dialect: ChatDialect): JsonObject {
  const { type = 'function', ...others } = native?.form === 'call' ? native.value : {}
  if (type === 'custom') return { id, type, custom: { name: part.name, input: customInput(part.arguments) }, ...others }
  const name = type === 'function' ? acceptedName(part.name) : part.name
  return { id, type, function: { name, arguments: wireArguments(part.arguments, dialect) }, ...others }
}

/** Many servers parse the arguments of earlier calls, and fail if they are not an object. */
function wireArguments(given: string, { anyArguments }: ChatDialect): string {
  const text = wellFormedEscapes(given)
  if (anyArguments) return text === '' ? '{}' : text
  const parsed = parseJson(text)
  return parsed.ok && isObject(parsed.value) ? text : JSON.stringify({ arguments: text })
}

/** The known inputs of a model. */
export interface ChatContentRules {
  readonly provider: string
  readonly dialect: ChatDialect
  /** Kinds of input other than text; undefined: all. */
  readonly inputs: readonly ContentPart['type'][] | undefined
}

/** The content of a user message. Throws `invalid_options` for content that the model does not support. */
function userContent(content: readonly ContentPart[], rules: ChatContentRules): string | readonly JsonObject[] {
  const telling = filledParts(content)
  const filled = telling.length > 0 ? telling : content.map(asGiven)
  const [only, ...others] = filled
  if (only === undefined) return ''
  if (only.type === 'text' && others.length === 0) return only.text
  const parts = filled.map((part) => {
    const sound = soundPart(part)
    const form = soundForm(sound.part ?? part, rules)
    if (form.part === null) throw new HarnessError('invalid_options', form.problem)
    return sound.part === null ? textPart(omissionText(sound.problem, 'message')) : form.part
  })
  return rules.dialect.contentLists ? parts : parts.map((part) => stringIn(part['text'])).join('\n\n')
}

function textPart(text: string): JsonObject {
  return { type: 'text', text }
}

/** A part in the form of the API, or the reason why it has none. */
type WirePart = { readonly part: JsonObject } | { readonly part: null; readonly problem: string }

function wirePart(given: ContentPart, rules: ChatContentRules): WirePart {
  const sound = soundPart(asGiven(given))
  return sound.part === null ? sound : soundForm(sound.part, rules)
}

function soundForm(part: GivenPart, rules: ChatContentRules): WirePart {
  if (part.type === 'text') return { part: textPart(part.text) }
  if (part.type === 'file' && isTextType(part.mediaType)) return { part: textPart(textOfFile(part)) }
  const problem = unsupportedReason(part, rules)
  return problem === undefined ? { part: mediaPart(part) } : { part: null, problem }
}

type MediaPart = Exclude<GivenPart, { readonly type: 'text' }>

function mediaPart(part: MediaPart): JsonObject {
  if ('url' in part) return { type: 'image_url', image_url: { url: part.url } }
  const { data } = part
  const type = bareType(part.mediaType)
  switch (part.type) {
    case 'image':
      return { type: 'image_url', image_url: { url: dataUrl(data, type) } }
    case 'file':
      return {
        type: 'file',
        file: { filename: part.name ?? `file.${mediaSubtype(type)}`, file_data: dataUrl(data, type) },
      }
    case 'audio':
      return { type: 'input_audio', input_audio: { data, format: AUDIO_FORMATS.get(type) ?? mediaSubtype(type) } }
  }
}

/** The reason why the model does not support `part`. */
function unsupportedReason(part: MediaPart, { provider, dialect, inputs }: ChatContentRules): string | undefined {
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

function mediaSubtype(bareType: string): string {
  return bareType.replace(/^.*\//, '').replace(/^x-/, '')
}
