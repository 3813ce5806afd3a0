import type { Answer, PendingItem } from 'thinharness'

/** A person's response: yes or no, an answer, or the outcome of a call. */
type Response = boolean | string | { outcome: 'happened' | 'did_not_happen' | 'run_again' }

export function answerTo({ kind, callId }: PendingItem, response: Response): Answer {
  if (kind === 'approval') return { callId, approved: response === true }
  return { callId, answer: response }
}
