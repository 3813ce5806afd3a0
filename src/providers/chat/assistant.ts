import type { AssistantEntry, AssistantPart, ToolCallPart } from '../../contracts/entry.js'
import { isObject, parseJson } from '../../util/json.js'
import type { JsonObject, JsonValue } from '../../util/json.js'
import { acceptedName, customInput } from '../wire/calls.js'
import { thinkingText } from '../wire/content.js'
import { stringIn } from '../wire/read.js'
import { wellFormedEscapes } from '../wire/well-formed.js'
import { textPart } from './content.js'
import { wireCallId } from './dialect.js'
import type { ChatDialect } from './dialect.js'
import { nativeOf } from './native.js'
import type { ChatNative } from './native.js'

/**
 * An assistant message. This provider's parts are sent back in their original form, as far as its dialect allows.
 * Reasoning of another provider becomes text, and its parts without text are omitted.
 */
export function assistantMessage(entry: AssistantEntry, provider: string, dialect: ChatDialect): JsonObject {
  const isOwn = entry.provider === provider
  const placed = entry.parts.map((part): Placed => ({ part, native: nativeOf(part, provider) }))
  const calls = placed.flatMap(({ part, native }) =>
    part.type === 'tool_call'
      ? [wireCall({ part, native, id: wireCallId(part.callId, dialect.callIds, isOwn) }, dialect)]
      : [],
  )
  const content = contentOf(placed, dialect)
  const isEmpty = content === ''
  return {
    role: 'assistant',
    ...(!isEmpty && { content }),
    ...(isEmpty && withoutText(calls.length > 0, dialect)),
    ...requiredReasoning(dialect),
    ...(dialect.replaysReasoning && reasoningOf(placed)),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...othersOf(placed, dialect),
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
function contentOf(placed: readonly Placed[], dialect: ChatDialect): string | readonly JsonValue[] {
  const isReplayed = ({ part, native }: Placed): boolean => {
    return (
      native?.form === 'block' && (part.type === 'opaque' || (part.type === 'reasoning' && dialect.replaysReasoning))
    )
  }
  if (!placed.some(isReplayed)) return paragraphs(placed)
  return placed.flatMap((each): JsonValue[] => {
    if (isReplayed(each)) return [each.native?.value ?? {}]
    const text = paragraphs([each])
    return text === '' ? [] : [textPart(text)]
  })
}

/** Texts are joined as the model wrote them; reasoning of other providers is separated by blank lines. */
function paragraphs(placed: readonly Placed[]): string {
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
function reasoningOf(placed: readonly Placed[]): JsonObject {
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
function othersOf(placed: readonly Placed[], { replayedFields }: ChatDialect): JsonObject {
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
