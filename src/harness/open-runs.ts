import { HarnessError } from '#contracts/errors.js'
import type { HarnessResult } from '#contracts/result.js'
import { asLogStore } from '#core/log/log.js'
import type { RunLog } from '#core/log/log.js'
import { inputPort } from '#core/stream/input.js'
import type { InputPort } from '#core/stream/input.js'
import { EventQueue } from '#core/stream/queue.js'
import type { StreamedRun } from '#core/stream/stream.js'
import { LEAVE_GRACE_MS, RunAbort } from '#util/abort.js'
import { sleep } from '#util/timeout.js'
import { LiveRuns } from './follow.js'
import type { CloseOptions, RunOptions } from './options.js'
import { copyOfBudgets } from './budgets.js'

/** A run at the top, from the call that begins it to its end. */
export interface OpenRun {
  readonly runId: string
  /** A copy: later changes by the caller apply to the next run. */
  readonly options: RunOptions
  readonly log: RunLog
  readonly queue: EventQueue
  /** For the events of its child runs. */
  readonly childQueue: EventQueue
  readonly abort: RunAbort
}

/** How a run is opened. */
interface Opened {
  readonly runId: string
  readonly log: RunLog
  /** Its events are read: with deltas, unless the options disable them. */
  readonly streamed: boolean
}

/** The runs of a harness that are in progress, and their followers. */
export class OpenRuns {
  readonly #outcomes = new Map<OpenRun, Promise<unknown>>()
  /** Runs that have begun can report warnings. */
  readonly #warnings = new Map<OpenRun, (message: string) => void>()
  readonly live = new LiveRuns()

  /** Opens a run and begins it with `begin`. */
  open<Output>(
    given: RunOptions,
    { runId, log, streamed }: Opened,
    begin: (run: OpenRun) => Promise<HarnessResult<Output>>,
  ): StreamedRun<Output> {
    const ownInput = inputPort()
    const input: InputPort = given.input ?? ownInput
    const options = copyOfOptions(streamed ? { ...given, input, deltas: given.deltas ?? true } : given)
    const queue = this.queue()
    const abort = new RunAbort(options.signal)
    abort.onAbort(() => queue.stopWaiting())
    abort.onLeave(() => {
      queue.stopWaiting()
    })
    const childQueue = options.includeSubagents === false ? this.unreadQueue() : queue
    const run = { runId, options, log, queue, childQueue, abort }
    const outcome = begin(run).finally(() => {
      queue.close()
      ownInput.close()
      this.#outcomes.delete(run)
      this.#warnings.delete(run)
    })
    this.#outcomes.set(run, outcome)
    return { runId, queue, abort, input, outcome }
  }

  /** A queue whose events followers get too. */
  queue(): EventQueue {
    return new EventQueue(this.live)
  }

  /** A queue that only followers read. */
  unreadQueue(): EventQueue {
    const queue = this.queue()
    queue.drop()
    return queue
  }

  /** The run has begun: `warn` reports warnings to its readers. */
  onWarning(run: OpenRun, warn: (message: string) => void): void {
    this.#warnings.set(run, warn)
  }

  /** Reports a warning to the readers of all runs in progress; false if there are none. */
  readonly warn = (message: string): boolean => {
    for (const warn of this.#warnings.values()) warn(message)
    return this.#warnings.size > 0
  }

  /** The log of a run in progress here; undefined for any other. */
  logOf(runId: string): RunLog | undefined {
    return [...this.#outcomes.keys()].find((run) => run.runId === runId)?.log
  }

  /** Cancels the run of that id, if it is in progress here. True if it ended as cancelled. */
  async cancel(runId: string, reason: HarnessError): Promise<boolean> {
    for (const [run, outcome] of this.#outcomes) {
      if (run.runId !== runId) continue
      run.abort.cancel(reason)
      const [{ status }] = await Promise.allSettled([outcome])
      if (status === 'rejected' && run.abort.byCaller) return true
    }
    return false
  }

  /** Waits for the runs in progress, which are finished, left or cancelled. */
  async close({ runs, timeoutMs }: CloseOptions): Promise<void> {
    const outcomes = [...this.#outcomes.values()]
    if (runs === 'finish') await settled(outcomes, timeoutMs)
    const graceMs = runs === 'finish' ? 0 : (timeoutMs ?? LEAVE_GRACE_MS)
    for (const { log, abort } of this.#outcomes.keys()) {
      const isLeft = runs === 'leave' || (runs !== 'cancel' && asLogStore(log).outlives === true)
      if (isLeft) abort.leave({ reason: left(), graceMs })
      else abort.cancel(new HarnessError('closed', 'The harness was closed.'))
    }
    await Promise.allSettled(outcomes)
  }
}

/** Resolves when all have settled, or the time is over. */
async function settled(outcomes: readonly Promise<unknown>[], timeoutMs: number | undefined): Promise<void> {
  const over = new AbortController()
  const all = Promise.allSettled(outcomes).finally(() => over.abort())
  if (timeoutMs === undefined) await all
  else await sleep(timeoutMs, over.signal).catch(() => undefined)
}

function left(): HarnessError {
  return new HarnessError('interrupted', 'The harness was closed and has left the run: `recover` continues it.')
}

function copyOfOptions(options: RunOptions): RunOptions {
  const { tools } = options
  return {
    ...options,
    ...(tools !== undefined && { tools: [...tools] }),
    ...copyOfBudgets(options),
  }
}
