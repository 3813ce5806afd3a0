import type { ProviderRequest, Reply } from 'thinharness/testing'

/** What is said where no model is named. The first answer does not fit its type, and is asked for again. */
export function answer({ turn }: ProviderRequest): Reply {
  const letter = 'Your order is three days late, since the carrier has lost it. A new one is under way.'
  if (turn === 0) return { calls: [{ name: 'lookup_order', arguments: { id: '1042' } }] }
  return { calls: [{ name: 'final_result', arguments: { late: true, days: turn === 1 ? -3 : 3, letter } }] }
}
