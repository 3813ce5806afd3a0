import { FINISH_REASONS, NO_TOKENS, textOf } from '#contracts/entry.js'
import type { AssistantPart } from '#contracts/entry.js'
import type { ModelTurn, TurnOptions } from '#core/model-session.js'
import { isObject, parseJson } from '#util/json.js'

/** What `semantic` compares of a reply's question. */
export interface KeptQuestion {
  readonly text: string
  readonly facts: string
  readonly vector: readonly number[]
}

/** A reply as it is kept. */
export interface KeptReply {
  readonly entry: Pick<ModelTurn['entry'], 'provider' | 'model' | 'finishReason' | 'parts'>
  readonly nativeFinishReason: string | null
  readonly question?: KeptQuestion
}

/** The reply as it is kept; null for one that is not: refused, cut, empty, with calls, or from a cache itself. */
export function kept(turn: ModelTurn, takesCalls: boolean): KeptReply | null {
  const { provider, model, finishReason } = turn.entry
  const hasCalls = turn.entry.parts.some(({ type }) => type === 'tool_call')
  const isWhole = finishReason === 'stop' || (takesCalls && finishReason === 'tool_calls')
  const isFilled = hasCalls || textOf(turn.entry.parts).trim() !== ''
  if (turn.cached === true || turn.refusal !== undefined || !isWhole || !isFilled || (hasCalls && !takesCalls))
    return null
  const parts = turn.entry.parts.flatMap(withoutNative)
  return { entry: { provider, model, finishReason, parts }, nativeFinishReason: turn.nativeFinishReason ?? null }
}

/** Without what only the provider reads. */
function withoutNative({ native: _, ...part }: AssistantPart): AssistantPart[] {
  return part.type === 'opaque' || (part.type === 'reasoning' && part.text === '') ? [] : [part]
}

/** A reply of the cache, as if it had just come: its texts at once, and nothing to be paid. */
export function served({ entry, nativeFinishReason }: KeptReply, { onDelta }: TurnOptions): ModelTurn {
  for (const part of entry.parts) {
    if (part.type === 'text' && part.text !== '') onDelta?.({ kind: 'text_delta', text: part.text })
    if (part.type === 'reasoning') onDelta?.({ kind: 'reasoning_delta', text: part.text })
    if (part.type === 'tool_call') {
      const { callId, name: toolName, arguments: text } = part
      onDelta?.({ kind: 'tool_input_delta', callId, toolName, text })
    }
  }
  return {
    entry: { role: 'assistant', ...entry, usage: NO_TOKENS },
    nativeFinishReason,
    responseId: null,
    cached: true,
  }
}

/** Reads what a store has given. Throws for anything else than a reply. */
export function readReply(text: string): KeptReply {
  const parsed = parseJson(text)
  if (parsed.ok && isReply(parsed.value)) return parsed.value as unknown as KeptReply
  throw new TypeError('the store has given something else than a reply')
}

function isReply(value: unknown): boolean {
  if (!isObject(value) || !isObject(value['entry'])) return false
  const { provider, model, finishReason, parts } = value['entry']
  const isNamed = typeof provider === 'string' && typeof model === 'string'
  return (
    isNamed && FINISH_REASONS.some((each) => each === finishReason) && Array.isArray(parts) && parts.every(isObject)
  )
}
