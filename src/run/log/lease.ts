import { setTimeout as sleep } from 'node:timers/promises'
import { HarnessError } from '../../contracts/errors.js'
import type { RunAbort } from '../../util/abort.js'
import { runRef } from './ref.js'
import type { RunLog } from './log.js'
import { newOwner } from './owner.js'

/** How long a run stays its owner's without a sign of life, in ms, and how often there is one. */
const LEASE_MS = 60_000
const RENEW_MS = 20_000
/** How often a run below another asks again for itself, in ms, and for how long: its owner ended with that of the other. */
const ASK_AGAIN_MS = 250
const PATIENCE_MS = LEASE_MS + 10_000

/** That a run is ours, in a log that knows owners: others are refused, and we are once it is theirs. */
export class Lease {
  readonly owner: string | undefined
  readonly #log: RunLog
  readonly #runId: string
  readonly #timer: NodeJS.Timeout | undefined

  private constructor(
    log: RunLog,
    runId: string,
    { owner, timer }: { readonly owner?: string | undefined; readonly timer?: NodeJS.Timeout | undefined } = {},
  ) {
    this.#log = log
    this.#runId = runId
    this.owner = owner
    this.#timer = timer
  }

  /**
   * Claims the run. When it is another's, throws `run_owned`, or `run_exists` for a run that would begin; aborts the run
   * when it is lost later. A run below another (`waits`) is asked for until the time of its last owner is over.
   */
  static async take(
    log: RunLog,
    runId: string,
    {
      abort,
      options: { begins, waits },
    }: { readonly abort: RunAbort; readonly options: { readonly begins: boolean; readonly waits: boolean } },
  ): Promise<Lease> {
    if (log.claim === undefined) return new Lease(log, runId)
    const owner = newOwner()
    const until = waits ? Date.now() + PATIENCE_MS : 0
    while (!(await log.claim(runRef(runId), owner, LEASE_MS))) {
      if (Date.now() >= until) throw ownedElsewhere(runId, begins)
      await sleep(ASK_AGAIN_MS, undefined, { signal: abort.signal })
    }
    const renew = (): void => {
      log.claim?.(runRef(runId), owner, LEASE_MS).then(
        (ours) => ours || abort.abort(lost(runId)),
        // A log that cannot be reached now is asked again; what must be kept is refused by its append.
        () => undefined,
      )
    }
    return new Lease(log, runId, { owner, timer: setInterval(renew, RENEW_MS).unref() })
  }

  /** Gives the run back, so that it can be resumed or recovered at once. Never rejects: who cannot give back lets it lapse. */
  async release(): Promise<void> {
    clearInterval(this.#timer)
    if (this.owner !== undefined) await this.#log.claim?.(runRef(this.#runId), this.owner, 0).catch(() => false)
  }
}

function ownedElsewhere(runId: string, begins: boolean): HarnessError {
  return new HarnessError(
    begins ? 'run_exists' : 'run_owned',
    `Run \`${runId}\` is under way elsewhere: it has an owner whose time is not over.`,
  )
}

function lost(runId: string): HarnessError {
  return new HarnessError('run_owned', `Run \`${runId}\` was taken over by another process.`)
}
