import { HarnessError } from '#contracts/errors.js'
import type { RunAbort } from '#util/abort.js'
import { runRef } from './ref.js'
import { storeFailure } from './log.js'
import type { RunLog } from './log.js'
import { endOwner, newOwner } from '#util/platform/owner.js'
import { unref } from '#util/platform/node.js'
import { sleep } from '#util/timeout.js'

/** How long a claim lasts, in ms, and how often it is renewed. */
const LEASE_MS = 60_000
const RENEW_MS = 20_000
/** How often a child run tries to claim its log, in ms, and for how long: its last owner ended with that of its parent. */
const ASK_AGAIN_MS = 250
const PATIENCE_MS = LEASE_MS + 10_000

/** How long to wait for the release of a claim, in ms. */
const RELEASE_MS = 2000

/** How a run is claimed. */
interface Taking {
  readonly abort: RunAbort
  /** Waits for an answer of the log, as long as the run allows. */
  readonly patience: <T>(answer: Promise<T>) => Promise<T>
  /** The run would begin. */
  readonly begins: boolean
  /** Waits until the claim of another owner has expired. */
  readonly waits: boolean
}

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
  static async take(log: RunLog, runId: string, { abort, patience, begins, waits }: Taking): Promise<Lease> {
    if (log.claim === undefined) return new Lease(log, runId)
    const owner = newOwner()
    const until = waits ? Date.now() + PATIENCE_MS : 0
    while (!(await claimed(log, { runId, owner, patience }))) {
      if (Date.now() >= until) throw ownedElsewhere(runId, begins)
      await sleep(ASK_AGAIN_MS, abort.signal)
    }
    const renew = (): void => {
      claim(log, { runId, owner }, LEASE_MS).then(
        (ours) => ours || abort.abort(lost(runId)),
        // The next renewal tries again; without a valid claim, an append is rejected.
        () => undefined,
      )
    }
    const timer = setInterval(renew, RENEW_MS)
    unref(timer)
    return new Lease(log, runId, { owner, timer })
  }

  /**
   * Releases the run, so that it can be continued immediately. Never rejects: a claim that cannot be released expires, and does not
   * stand in this process. A log that is `abandoned` is not waited for, any other one for a limited time.
   */
  async release(abandoned: boolean): Promise<void> {
    clearInterval(this.#timer)
    const { owner } = this
    if (owner === undefined) return
    const released = claim(this.#log, { runId: this.#runId, owner }, 0).catch(() => endOwner(owner))
    if (abandoned) return
    let timer: NodeJS.Timeout | undefined
    const late = new Promise((resolve) => (timer = setTimeout(resolve, RELEASE_MS)))
    await Promise.race([released, late])
    clearTimeout(timer)
  }
}

/** True if the run has been claimed. A claim that comes too late is released again. */
async function claimed(
  log: RunLog,
  { runId, owner, patience }: { readonly runId: string; readonly owner: string } & Pick<Taking, 'patience'>,
): Promise<boolean> {
  const claiming = claim(log, { runId, owner }, LEASE_MS)
  try {
    return await patience(claiming)
  } catch (error) {
    claiming.then((ours) => ours && claim(log, { runId, owner }, 0)).catch(() => false)
    throw error
  }
}

/** The log's answer. A custom log may throw, or answer with something else: then it could not claim. */
async function claim(
  log: RunLog,
  { runId, owner }: { readonly runId: string; readonly owner: string },
  ttlMs: number,
): Promise<boolean> {
  try {
    const ours: unknown = await log.claim?.(runRef(runId), owner, ttlMs)
    if (typeof ours === 'boolean') return ours
    throw new TypeError('expected `claim` to resolve to true or false.')
  } catch (thrown) {
    throw storeFailure(`claim run \`${runId}\``, thrown)
  }
}

function ownedElsewhere(runId: string, begins: boolean): HarnessError {
  return new HarnessError(
    begins ? 'run_exists' : 'run_owned',
    `Run \`${runId}\` is in progress elsewhere, or by another call of this process: it has an owner whose claim has not expired.`,
    { retryable: !begins },
  )
}

function lost(runId: string): HarnessError {
  return new HarnessError('run_owned', `Run \`${runId}\` was taken over by another process.`)
}
