import { setTimeout as sleep } from 'node:timers/promises'
import { HarnessError } from '../../contracts/errors.js'
import type { RunAbort } from '../../util/abort.js'
import { runRef } from './ref.js'
import type { RunLog } from './log.js'
import { newOwner } from './owner.js'

/** How long a claim lasts, in ms, and how often it is renewed. */
const LEASE_MS = 60_000
const RENEW_MS = 20_000
/** How often a child run tries to claim its log, in ms, and for how long: its last owner ended with that of its parent. */
const ASK_AGAIN_MS = 250
const PATIENCE_MS = LEASE_MS + 10_000

/** The claim of this process on a run. Without effect in a log that has no claims. */
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
   * Claims the run. Rejects with `run_owned`, or `run_exists` for a run that would begin, if another process owns it. Aborts
   * the run if the claim is lost later. For a child run (`waits`), waits until the claim of its last owner has expired.
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
        // The next renewal tries again; without a valid claim, an append is rejected.
        () => undefined,
      )
    }
    return new Lease(log, runId, { owner, timer: setInterval(renew, RENEW_MS).unref() })
  }

  /** Releases the run, so that it can be continued immediately. Never rejects: a claim that cannot be released expires. */
  async release(): Promise<void> {
    clearInterval(this.#timer)
    if (this.owner !== undefined) await this.#log.claim?.(runRef(this.#runId), this.owner, 0).catch(() => false)
  }
}

function ownedElsewhere(runId: string, begins: boolean): HarnessError {
  return new HarnessError(
    begins ? 'run_exists' : 'run_owned',
    `Run \`${runId}\` is in progress elsewhere: it has an owner whose claim has not expired.`,
  )
}

function lost(runId: string): HarnessError {
  return new HarnessError('run_owned', `Run \`${runId}\` was taken over by another process.`)
}
