import type { AssistantPart } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import type { DecodedReply, FoldOptions } from '../http/wire.js'
import { ReplyCalls } from './calls.js'
import { providerError } from '../http/errors.js'
import { finishOf } from './finish.js'
import { nativeForm } from './native.js'
import { listIn, stringIn } from './wire.js'
import type { AiSdkReply, Fields } from './wire.js'
import type { ProviderTraits } from './traits.js'
import { tokenUsage } from './usage.js'

interface DecodeRules {
  /** As in `NativePart.provider`. */
  readonly provider: string
  readonly traits: ProviderTraits
}

/** What `doGenerate` gave, of which the request is not kept: it holds the whole conversation. */
export function generatedReply(result: unknown, { callIdFor }: Pick<FoldOptions, 'callIdFor'>): AiSdkReply {
  if (!isObject(result) || !Array.isArray(result['content'])) {
    throw providerError('The language model gave what is no reply: it has no `content`.', {})
  }
  const { finishReason, usage, providerMetadata, response, warnings } = result
  const calls = new ReplyCalls(callIdFor)
  const content = listIn(result['content']).filter(isObject)
  return {
    content: content.map((part) =>
      isOurCall(part) ? { ...part, toolCallId: calls.close(part['toolCallId']).callId } : part,
    ),
    finishReason,
    usage,
    providerMetadata,
    response: isObject(response) ? response : {},
    warnings: listIn(warnings),
  }
}

/** A reply whose calls have ids of their own, as a turn has it. */
export function decodeReply(reply: AiSdkReply, rules: DecodeRules): DecodedReply {
  const parts = reply.content.map((part) => partOf(part, rules.provider)).filter((part) => part !== null)
  const hasCalls = parts.some((part) => part.type === 'tool_call')
  return {
    parts,
    ...finishOf(reply.finishReason, hasCalls, rules.traits.filterWord),
    usage: tokenUsage(reply.usage, reply.providerMetadata),
    responseId: stringIn(reply.response['id']) || null,
    responseModel: stringIn(reply.response['modelId']) || null,
    raw: reply,
  }
}

/** Whether a part calls a tool of the harness, not one that the provider runs itself. */
export function isOurCall(part: Fields): boolean {
  return part['type'] === 'tool-call' && part['providerExecuted'] !== true
}

/** A call's input as text. */
export function inputText(input: unknown): string {
  if (typeof input === 'string') return input === '' ? '{}' : input
  return JSON.stringify(input ?? {})
}

/** Null for what says nothing: an empty text, a result that another replaces. */
function partOf(part: Fields, provider: string): AssistantPart | null {
  const { type, text, providerMetadata } = part
  const metadata = isObject(providerMetadata) ? { providerMetadata } : null
  const own = metadata === null ? {} : nativeForm(provider, metadata)
  switch (type) {
    case 'text':
      return text === '' && metadata === null ? null : { type, text: stringIn(text), ...own }
    case 'reasoning':
      return { type, text: stringIn(text), ...nativeForm(provider, metadata ?? {}) }
    case 'tool-call': {
      if (!isOurCall(part)) break
      const { toolCallId, toolName, input } = part
      const call = { callId: stringIn(toolCallId), name: stringIn(toolName), arguments: inputText(input) }
      return { type: 'tool_call', ...call, ...own }
    }
    case 'tool-result':
      if (part['preliminary'] === true) return null
  }
  return { type: 'opaque', ...nativeForm(provider, part) }
}
