import type { StopReason as AcpStopReason } from '@agentclientprotocol/sdk'
import type { AnyRunEvent } from '../ui/projection.js'
import { sentenceOf } from '../ui/sentences.js'

type Ended = Extract<AnyRunEvent, { readonly kind: 'run_completed' | 'run_failed' | 'run_left' }>
type Started = Extract<AnyRunEvent, { readonly kind: 'run_started' }>
type Replied = Extract<AnyRunEvent, { readonly kind: 'model_message' }>

/** The last stretch of a run, as far as its end depends on it. */
export interface Stretch {
  readonly limits: Started['rules']['limits'] | null
  readonly finishReason: Replied['entry']['finishReason'] | null
}

/** The end of a prompt, or the failure that it is answered with. */
export type PromptEnd =
  | { readonly stopReason: AcpStopReason }
  | { readonly failure: { readonly message: string; readonly data: Readonly<Record<string, unknown>> } }

export function promptEnd(event: Ended, { limits, finishReason }: Stretch): PromptEnd {
  if (event.kind === 'run_completed') return { stopReason: 'end_turn' }
  if (event.kind === 'run_left') return failed('interrupted', 'interrupted', event.runId)
  const { stopReason, code, runId, usage } = event
  if (stopReason === 'cancelled') return { stopReason: 'cancelled' }
  if (stopReason === 'cancelled_by_hook') return { stopReason: 'end_turn' }
  if (stopReason === 'limit_reached') {
    const isOver = (limit: number | null | undefined, used: number): boolean =>
      limit !== null && limit !== undefined && used >= limit
    const byTokens = isOver(limits?.inputTokens, usage.inputTokens) || isOver(limits?.outputTokens, usage.outputTokens)
    return { stopReason: byTokens ? 'max_tokens' : 'max_turn_requests' }
  }
  if (finishReason === 'length') return { stopReason: 'max_tokens' }
  if (finishReason === 'refusal' || finishReason === 'content_filter') return { stopReason: 'refusal' }
  return failed(code, stopReason, runId)
}

function failed(code: string, stopReason: string, runId: string): PromptEnd {
  return { failure: { message: sentenceOf({ code }), data: { code, stopReason, runId } } }
}
