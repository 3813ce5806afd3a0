import { renderEnvelope } from '../tools/boundary/envelope.js'
import type { ContentPart, ContentSource } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'

/** How a call of a batch ended: what its entry will say, and what counts. */
export interface SettledCall {
  readonly at: string
  readonly output: string
  readonly parts: readonly ContentPart[] | null
  readonly ok: boolean
  readonly cancelled: boolean
  readonly retryKind: string | null
  readonly source?: ContentSource
  /** It brought nothing new. */
  readonly stale?: true
}

/** Facts about a call that are not in its entry. */
export interface CallNote {
  readonly cancelled?: true
  readonly approval?: { readonly approved: boolean; readonly reason?: string }
  /** The call that it stands for, if the model called another tool. */
  readonly call?: { readonly name: string; readonly arguments: string; readonly via: string }
}

/** The `final_result` call by which the answer was given. */
export function acceptedAnswer(at: string): SettledCall {
  const output = renderEnvelope({ ok: true, content: 'The final answer was accepted.', metadata: {} })
  return { at, output, parts: null, ok: true, cancelled: false, retryKind: null }
}

/** A `final_result` call next to other calls: the answer was given before their results were known. */
export function setAsideAnswer(at: string): SettledCall {
  const content =
    'The answer was not accepted yet, because other calls were made together with it. Read their results, then give the answer again: call `final_result` alone.'
  return failedCall(at, false, content, { error_type: 'AnswerNotAlone', retry: true })
}

/** A call that had not ended when its run did. */
export function cutOff(started: boolean, at: string): SettledCall {
  const content = started
    ? 'The run ended while this call was under way: its outcome is unknown.'
    : 'The run ended before this call was made: it had no effect.'
  return failedCall(at, true, content, { error_type: started ? 'Interrupted' : 'Cancelled' })
}

function failedCall(at: string, cancelled: boolean, content: string, metadata: JsonObject): SettledCall {
  const output = renderEnvelope({ ok: false, content, metadata })
  return { at, output, parts: null, ok: false, cancelled, retryKind: null }
}
