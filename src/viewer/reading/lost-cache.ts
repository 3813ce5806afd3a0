import type { TurnNode } from './nodes.js'

/** A cache of a provider lasts so long without a request, in ms. */
const CACHE_LASTS_MS = 5 * 60_000

/**
 * Why the prompt cache was lost at a turn, by what the harness has seen, or by the numbers: most of what was cached has to be read
 * anew. Null: it was not.
 */
export function lostCache(before: TurnNode | undefined, turn: TurnNode): string | null {
  const bust = turn.marks.find(({ kind }) => kind === 'cache_bust')
  if (bust !== undefined) return bust.text
  const known = before?.tokens
  if (before === undefined || known === null || known === undefined || turn.tokens === null) return null
  const could = known.cached + known.cacheWrite
  if (could < 1000 || turn.tokens.cached >= could / 2) return null
  if (before.model !== turn.model) return `The model changed from ${before.model} to ${turn.model}.`
  if (turn.marks.some(({ kind }) => kind === 'view_changed')) return 'Earlier entries were shortened.'
  const waited = turn.startedAt - (before.repliedAt ?? before.startedAt)
  return waited > CACHE_LASTS_MS
    ? 'More than five minutes had passed since the request before.'
    : 'The cause is not known.'
}
