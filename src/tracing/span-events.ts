import type { RunEvent } from '../index.js'
import type { Content } from './options.js'
import { SPAN_EVENT } from './names.js'
import type { Attributes } from './spans.js'

/** An event on a span. */
interface SpanEvent {
  readonly name: string
  readonly attributes: Attributes
}

/** The record of a run's event on the current span; null if the event has a span of its own or is not traced. */
export function markOf(event: RunEvent, content: Content): SpanEvent | null {
  switch (event.kind) {
    case 'transport_retry': {
      const { attempt, delayMs: delay_ms, status, withdrawn } = event
      const reason = content.redact(event.reason, SPAN_EVENT.exceptionMessage)
      return marked('retry', { attempt, delay_ms, status: status ?? undefined, withdrawn, reason })
    }
    case 'model_retry':
      return marked('outputRetry', { kind: event.retryKind, call_id: event.callId ?? undefined })
    case 'limit_warning':
      return marked('limitWarning', { limit: event.limitKind, remaining: event.remaining })
    case 'cache_bust':
      return marked('cacheBust', { path: event.path, cause: event.cause })
    case 'hook_failed':
      return marked('hookFailed', { hook: event.hookEvent })
    case 'view_changed': {
      const { policy, changes, tokensBefore, tokensAfter } = event
      const tokens = { tokens_before: tokensBefore ?? undefined, tokens_after: tokensAfter ?? undefined }
      return marked('viewChanged', { policy, changes: changes.length, ...tokens })
    }
    case 'view_prepared':
      return marked('viewPrepared', { policy: event.policy, ok: event.shown !== null })
    case 'tool_call_interrupted':
      return marked('interrupted', { call_id: event.callId, settled_by: event.settledBy })
    case 'background_reported': {
      const { callId: call_id, childRunId: run_id, agent, ok } = event
      return marked('background', { call_id, run_id, agent, ok })
    }
    case 'run_started':
    case 'model_request_started':
    case 'model_message':
    case 'tool_call_started':
    case 'tool_call_completed':
    case 'run_completed':
    case 'run_failed':
    case 'run_left':
    case 'call_prepared':
    case 'approval_requested':
    case 'approval_resumed':
    case 'answer_received':
    case 'transcript_repaired':
    case 'extension_recorded':
    case 'text_delta':
    case 'reasoning_delta':
    case 'tool_input_delta':
    case 'tool_progress':
    case 'output_delta':
    case 'warning':
    case 'deltas_withdrawn':
      return null
  }
}

function marked(event: keyof typeof SPAN_EVENT, attributes: Attributes): SpanEvent {
  return { name: SPAN_EVENT[event], attributes }
}
