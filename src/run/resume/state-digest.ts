import type { ResumeState } from '#contracts/result.js'
import { canonicalJson } from '#util/json.js'
import { isChildReference } from '#core/state/child-state.js'
import type { ChildReference, StoredChild } from '#core/state/child-state.js'
import { complete } from '#core/state/closing.js'
import { withChildren } from '#core/state/nested-states.js'
import type { RunState } from '#core/state/state.js'
import type { StoredState } from './stored-state.js'
import { sha256 } from '#util/platform/sha256.js'

/** True if a stored state is the one that the log holds at its event. */
export function isSameState({ state }: StoredState, logged: RunState): boolean {
  if (state.seq !== logged.seq || state.runId !== logged.runId) return false
  return digestOf(state) === digestOf(asDocument(state, logged))
}

/** The reference to a child run, given its state. */
export function referenceTo(child: StoredChild): ChildReference {
  if (isChildReference(child)) return child
  const { responses: _, signature: __, ...state } = child
  const { runId, seq } = child as ResumeState & { readonly seq: number }
  return { runId, seq, digest: digestOf(state as unknown as RunState) }
}

/** A run with its answer is closed in its document, also before its end is in the log. */
function asDocument({ phase }: RunState, logged: RunState): RunState {
  if (phase.at !== 'ended' || logged.phase.at !== 'answered') return logged
  const copy = structuredClone(logged)
  complete(copy, { stopReason: 'end_turn', at: copy.updatedAt })
  return copy
}

/** A child run counts by its reference, whether it is in the state or not. */
function digestOf(state: RunState): string {
  return sha256(canonicalJson(withChildren(state, referenceTo)))
}
