import { HarnessError } from '#contracts/errors.js'
import { inGrace } from '#util/abort.js'
import type { RunAbort } from '#util/abort.js'
import { isChildReference } from '../state/child-state.js'
import type { DurableEvent } from '../state/events.js'
import { isReference } from '../state/history.js'
import type { RunDigest } from './run-summary.js'
import { Lease } from './lease.js'
import { STORED } from './log.js'
import type { AppendOptions, RunLog } from './log.js'
import { runRef } from './ref.js'
import type { LogRef } from './ref.js'

/** How long the log may take after the run was aborted: for an append, and for anything else, in ms. */
const APPEND_GRACE_MS = 2000
const GRACE_MS = 250

/** The only writer of a run's log in this process. Waits for the log as long as the run is not aborted, and a little longer. */
export class RunWriter {
  readonly #log: RunLog
  readonly #ref: LogRef<'run'>
  readonly #abort: RunAbort
  #lease: Lease | null = null
  /** Fails the append in progress. */
  #giveUp: ((failure: HarnessError) => void) | null = null
  #graceTimer: NodeJS.Timeout | undefined
  /** The log did not answer in time: it is no longer waited for. */
  #isAbandoned = false

  constructor(log: RunLog, runId: string, abort: RunAbort) {
    this.#log = log
    this.#ref = runRef(runId)
    this.#abort = abort
  }

  /** Claims the run for this process, if its log has owners. Rejects if another process owns it. */
  async claim(options: { readonly begins: boolean; readonly waits: boolean }): Promise<void> {
    const patience = <T>(answer: Promise<T>): Promise<T> => this.answer(answer)
    this.#lease = await Lease.take(this.#log, this.#ref.id, { abort: this.#abort, patience, ...options })
    this.#abort.onAbort(() => this.#limitAppend())
  }

  async release(): Promise<void> {
    clearTimeout(this.#graceTimer)
    await this.#lease?.release(this.#isAbandoned)
  }

  /** The answer of the log. Rejects with `store_failure` if the run has been aborted and there still is none. */
  answer<T>(answer: Promise<T>, graceMs = GRACE_MS): Promise<T> {
    return inGrace(answer, this.#abort, { graceMs, late: this.#abandon })
  }

  /** Stores events. Rejects if the log does, or does not answer in time. */
  append(events: readonly DurableEvent[], digest: () => RunDigest): Promise<void> {
    const appending = this.#log.append(this.#ref, events, new RunAppend(this.#lease?.owner, events, digest))
    if (appending === STORED) return STORED
    if (this.#abort.isAborted) return this.answer(appending, APPEND_GRACE_MS)
    return new Promise((resolve, reject) => {
      this.#giveUp = reject
      Promise.resolve(appending).then(() => {
        this.#giveUp = null
        resolve()
      }, reject)
    })
  }

  /** The run was aborted: the append in progress must end soon. */
  #limitAppend(): void {
    const giveUp = this.#giveUp
    if (giveUp === null) return
    this.#graceTimer = setTimeout(() => {
      if (this.#giveUp === giveUp) giveUp(this.#abandon())
    }, APPEND_GRACE_MS)
  }

  readonly #abandon = (): HarnessError => {
    this.#isAbandoned = true
    const message = `The log has not answered since run \`${this.#ref.id}\` was stopped.`
    return new HarnessError('store_failure', message)
  }
}

/** The options of an append to a run's log. The digest is computed only if the log reads it. */
class RunAppend implements AppendOptions {
  readonly owner: string | undefined
  readonly references: readonly LogRef[] | undefined
  readonly #digest: () => RunDigest

  constructor(owner: string | undefined, events: readonly DurableEvent[], digest: () => RunDigest) {
    this.owner = owner
    this.#digest = digest
    const references = events.flatMap(referencesOf)
    if (references.length > 0) this.references = references
  }

  get digest(): RunDigest {
    return this.#digest()
  }
}

/** The logs that an event refers to. */
export function referencesOf(event: DurableEvent): readonly LogRef[] {
  if (event.kind === 'run_started') return isReference(event.history) ? [runRef(event.history.runId)] : NONE
  if (event.kind !== 'approval_requested' || event.children === undefined) return NONE
  return event.children.filter(isChildReference).map(({ runId }) => runRef(runId))
}

const NONE: readonly LogRef[] = []
