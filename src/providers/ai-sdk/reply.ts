import type { AssistantPart } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import type { DecodedReply, FoldOptions } from '../http/wire.js'
import { providerError } from '../http/errors.js'
import { argumentsText, ReplyCallIds } from '../wire/calls.js'
import { waitsForClient } from '../wire/client-items.js'
import { listIn, objectsIn, stringIn } from '../wire/read.js'
import type { Fields } from '../wire/read.js'
import { endedInError, finishOf } from './finish.js'
import type { ProviderTraits } from './traits.js'
import { tokenUsage } from './usage.js'
import { isCompaction, nativeForm } from './wire.js'
import type { AiSdkReply } from './wire.js'

interface DecodeRules {
  /** As in `NativePart.provider`. */
  readonly provider: string
  readonly traits: ProviderTraits
}

/** The result of `doGenerate`, without the request, which contains the whole conversation. */
export function generatedReply(result: unknown, { callIdFor }: Pick<FoldOptions, 'callIdFor'>): AiSdkReply {
  if (!isObject(result) || !Array.isArray(result['content'])) {
    throw providerError('The result of the language model is not a reply: it has no `content`.', {})
  }
  const { finishReason, usage, providerMetadata, response, warnings } = result
  const ids = new ReplyCallIds(callIdFor)
  return {
    content: objectsIn(result['content']).map((part) =>
      isOwnCall(part) ? { ...part, toolCallId: ids.take(part['toolCallId']) } : part,
    ),
    finishReason,
    usage,
    providerMetadata,
    response: isObject(response) ? response : {},
    warnings: listIn(warnings),
  }
}

/** A reply whose calls have their final ids. Throws `provider_error` if the provider ended it in an error. */
export function decodeReply(reply: AiSdkReply, rules: DecodeRules): DecodedReply {
  const failure = endedInError(reply.finishReason)
  if (failure !== null) throw failure
  if (reply.content.some(({ type }) => type === APPROVAL)) throw waitsForClient([APPROVAL])
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

/** A call of the provider's own tool that a person has to approve. */
const APPROVAL = 'tool-approval-request'

/** True for a call of a tool of the harness, false for one that the provider executes itself. */
export function isOwnCall(part: Fields): boolean {
  return part['type'] === 'tool-call' && part['providerExecuted'] !== true
}

/** Null for an empty text, and for a result that another one replaces. */
function partOf(part: Fields, provider: string): AssistantPart | null {
  const { type, text, providerMetadata } = part
  const metadata = isObject(providerMetadata) ? { providerMetadata } : null
  const own = metadata === null ? {} : nativeForm(provider, metadata)
  switch (type) {
    case 'text':
      if (isCompaction(providerMetadata)) return compactionPart(part, provider)
      return text === '' && metadata === null ? null : { type, text: stringIn(text), ...own }
    case 'reasoning':
      return { type, text: stringIn(text), ...nativeForm(provider, metadata ?? {}) }
    case 'tool-call': {
      if (!isOwnCall(part)) break
      const { toolCallId, toolName, input } = part
      const call = { callId: stringIn(toolCallId), name: stringIn(toolName), arguments: argumentsText(input) }
      return { type: 'tool_call', ...call, ...own }
    }
    case 'tool-result':
      if (part['preliminary'] === true) return null
  }
  return { type: 'opaque', ...nativeForm(provider, part) }
}

/**
 * A summary in place of the conversation so far, which the AI SDK gives as text. It is no part of the answer, and only this
 * provider gets it back.
 */
function compactionPart({ text, providerMetadata }: Fields, provider: string): AssistantPart {
  return { type: 'opaque', ...nativeForm(provider, { type: 'compaction', content: text, providerMetadata }) }
}
