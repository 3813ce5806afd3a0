import { createHash } from 'node:crypto'
import { canonicalJson } from '../../util/canonical-json.js'
import { complete } from '../machine/closing.js'
import type { RunState } from '../machine/state.js'
import type { StoredState } from './stored-state.js'

/**
 * Whether a stored state is the one that the log holds at its event. Documents of format 1 are taken by their number: the
 * content of the log counts in any case.
 */
export function isSameState({ state, isOld }: StoredState, logged: RunState): boolean {
  if (state.seq !== logged.seq || state.runId !== logged.runId) return false
  return isOld === true || digestOf(state) === digestOf(asDocument(state, logged))
}

/** A run with its answer is closed in its document, also before its end is in the log. */
function asDocument({ phase }: RunState, logged: RunState): RunState {
  if (phase.at !== 'ended' || logged.phase.at !== 'answered') return logged
  const copy = structuredClone(logged)
  complete(copy, { stopReason: 'end_turn', at: copy.updatedAt })
  return copy
}

function digestOf(state: RunState): string {
  return createHash('sha256').update(canonicalJson(state)).digest('hex')
}
