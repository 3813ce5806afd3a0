import { copyOfState, fold } from './apply.js'
import type { DurableEvent } from '../state/events.js'
import type { Conversation } from '../state/history.js'
import type { RunState } from '../state/state.js'
import { digestOf } from '../log/digest.js'
import type { RunDigest } from '../log/digest.js'

/**
 * Computes the digest of a run before its next events are stored. It folds each event once into a state of its own, so
 * that the work per append does not grow with the transcript.
 */
export class DigestFold {
  #ahead: RunState | null = null

  /** The digest after `events`, which follow `state`; null: they begin the run. May be called again for the same events. */
  after(state: RunState | null, events: readonly DurableEvent[], history: Conversation): RunDigest {
    const lastSeq = events.at(-1)?.seq ?? state?.seq
    if (this.#ahead === null || this.#ahead.seq !== lastSeq) {
      const isAtState = this.#ahead !== null && this.#ahead.seq === state?.seq
      const before = isAtState ? this.#ahead : state && copyOfState(state)
      this.#ahead = fold(events, history, before ?? undefined) ?? null
    }
    if (this.#ahead === null) throw new RangeError('Expected a run that has begun, or its first event.')
    return digestOf(this.#ahead)
  }
}
