import type { ProviderRequest, Reply } from 'thinharness/testing'

/** The scripted replies for use without a model. The first answer is invalid, so it is requested again. */
export function answer({ turn }: ProviderRequest): Reply {
  const letter = 'Your order is three days late, because the carrier lost it. A replacement is on its way.'
  if (turn === 0) return { calls: [{ name: 'lookup_order', arguments: { id: '1042' } }] }
  return { calls: [{ name: 'final_result', arguments: { late: true, days: turn === 1 ? -3 : 3, letter } }] }
}
