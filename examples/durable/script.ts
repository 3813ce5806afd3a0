import type { ProviderRequest, Reply } from 'thinharness/testing'

/** The scripted replies for use without a model. */
export function answer({ turn }: ProviderRequest): Reply {
  if (turn === 0) return { calls: [{ name: 'transfer', arguments: { to: 'Assam Estates', cents: 120_000 } }] }
  if (turn === 1) return { calls: [{ name: 'transfer', arguments: { to: 'Tin Works', cents: 45_000 } }] }
  return { text: 'Both suppliers are paid.' }
}
