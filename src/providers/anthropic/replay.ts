import type { ThinkingBlockParam, ToolUseBlockParam } from '@anthropic-ai/sdk/resources/messages'
import type { AssistantEntry, AssistantPart, ReasoningPart, ToolCallPart } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import type { JsonObject, JsonValue } from '../../util/json.js'
import { calledName } from '../wire/called-name.js'
import { inputOf } from './calls.js'
import { textBlock } from './content.js'
import { toolUseId } from './names.js'
import { PROVIDER } from './provider.js'
import { without } from './without.js'

/**
 * Blocks of an earlier reply. Our own parts are given back as they came, those of other providers as far as the API has
 * a form for them. `thinking` says whether the model thinks now: if not, the API refuses thoughts in the
 * reply that goes on, and they become text (RF-11, RF-13).
 */
export function assistantBlocks({ parts }: AssistantEntry, thinking: boolean): readonly JsonObject[] {
  const blocks = parts.map((part) => blockOf(part, thinking)).filter((block) => block !== null)
  // A text of spaces alone is refused, but only where no other text is in the message.
  return blocks.some(isWrittenText) ? blocks : blocks.filter((block) => block['type'] !== 'text')
}

function isWrittenText({ type, text }: JsonObject): boolean {
  return type === 'text' && typeof text === 'string' && text.trim() !== ''
}

function blockOf(part: AssistantPart, thinking: boolean): JsonObject | null {
  const native = nativeData(part)
  switch (part.type) {
    case 'text':
      return part.text === '' ? null : { ...textBlock(part.text), ...citations(native) }
    case 'reasoning':
      return (thinking ? thought(part, native) : null) ?? thoughtAsText(part)
    case 'tool_call':
      return toolUse(part, native)
    case 'opaque':
      return native ?? textWithin(part)
  }
}

/** What this provider added to the part. */
function nativeData({ native }: AssistantPart): JsonObject | null {
  return native?.provider === PROVIDER && isObject(native.data) ? native.data : null
}

/** Citations in the form of a request, which has no `file_id`. */
function citations(native: JsonObject | null): JsonObject {
  const given = native?.['citations']
  if (!Array.isArray(given)) return {}
  return { citations: (given as readonly JsonValue[]).map(citation) }
}

function citation(given: JsonValue): JsonValue {
  return isObject(given) ? without(given, 'file_id') : given
}

/** The signed or encrypted form of a thought, exactly as it came. */
function thought({ text }: ReasoningPart, native: JsonObject | null): JsonObject | null {
  if (native?.['type'] === 'redacted_thinking') return native
  const signature = native?.['signature']
  if (typeof signature !== 'string') return null
  return { ...native, ...({ type: 'thinking', thinking: text, signature } satisfies ThinkingBlockParam) }
}

function thoughtAsText({ text }: ReasoningPart): JsonObject | null {
  return text === '' ? null : textBlock(`<thinking>\n${text}\n</thinking>`)
}

const LONGEST_NAME = 128

/** The part's own id, name and arguments win: the tool boundary may have repaired them. */
function toolUse({ callId, name, arguments: text }: ToolCallPart, native: JsonObject | null): JsonObject {
  const block = {
    type: 'tool_use',
    id: toolUseId(callId),
    name: calledName(name, LONGEST_NAME),
    input: inputOf(text),
  } as const
  return { ...native, ...(block satisfies ToolUseBlockParam) }
}

/** What another provider's part says, where it says something: a refusal, for one. */
function textWithin({ native }: AssistantPart): JsonObject | null {
  if (native === undefined || !isObject(native.data)) return null
  const held: readonly unknown[] = [native.data, ...Object.values(native.data)]
  const text = held
    .filter(isObject)
    .flatMap((object) => [object['text'], object['refusal']])
    .find((said) => typeof said === 'string')
  return text === undefined || text === '' ? null : textBlock(text)
}
