import { renderEnvelope } from '../tools/envelope.js'
import type { ContentPart, ContentSource } from '../transcript/entry.js'

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

/** The `final_result` call by which the answer was given. */
export function acceptedAnswer(at: string): SettledCall {
  const output = renderEnvelope({ ok: true, content: 'The final answer was accepted.', metadata: {} })
  return { at, output, parts: null, ok: true, cancelled: false, retryKind: null }
}

/** A call that had not ended when its run did. */
export function cutOff(started: boolean, at: string): SettledCall {
  const output = renderEnvelope({
    ok: false,
    content: started
      ? 'The run ended while this call was under way: its outcome is unknown.'
      : 'The run ended before this call was made: it had no effect.',
    metadata: { error_type: started ? 'Interrupted' : 'Cancelled' },
  })
  return { at, output, parts: null, ok: false, cancelled: true, retryKind: null }
}
