import { isChildReference } from '../machine/child-state.js'
import type { DurableEvent } from '../machine/events.js'
import { isReference } from '../machine/history.js'
import type { RunDigest } from './digest.js'
import type { AppendOptions } from './log.js'
import { runRef } from './ref.js'
import type { LogRef } from './ref.js'

/** The options of an append to a run's log. The digest is computed only if the log reads it. */
export class RunAppend implements AppendOptions {
  readonly owner: string | undefined
  readonly references: readonly LogRef[] | undefined
  readonly #digest: () => RunDigest

  constructor(owner: string | undefined, events: readonly DurableEvent[], digest: () => RunDigest) {
    this.owner = owner
    this.#digest = digest
    const references = events.flatMap(referencesIn)
    if (references.length > 0) this.references = references
  }

  get digest(): RunDigest {
    return this.#digest()
  }
}

/** The logs that an event refers to. */
function referencesIn(event: DurableEvent): readonly LogRef[] {
  if (event.kind === 'run_started') return isReference(event.history) ? [runRef(event.history.runId)] : NONE
  if (event.kind !== 'approval_requested' || event.children === undefined) return NONE
  return event.children.filter(isChildReference).map(({ runId }) => runRef(runId))
}

const NONE: readonly LogRef[] = []
