import type { Answer, PendingItem } from 'thinharness'

/** What the person at the screen said to an item: yes or no, a text, or what became of a call. */
type Said = boolean | string | { outcome: 'happened' | 'did_not_happen' | 'run_again' }

export function answerTo({ kind, callId }: PendingItem, said: Said): Answer {
  if (kind === 'approval') return { callId, approved: said === true }
  return { callId, answer: said }
}
