import { HarnessError, cancelledError, messageOf } from '../contracts/errors.js'
import type { CompletedResult, HarnessResult, PausedResult } from '../contracts/result.js'
import { purseOf } from '../money/budget.js'
import type { Budget } from '../money/budget.js'
import { listenToAbort } from '../util/abort.js'
import { itemsOf } from '../util/items.js'
import { isObject } from '../util/json.js'
import { shown } from '../util/mismatch.js'
import type { Prompt, RunOptions } from './options.js'

/** The run of a row: its prompt and the options of the run. */
export interface RowRun<Deps = unknown> extends RunOptions<Deps> {
  readonly prompt: Prompt
}

/** Gives the run of a row; `index` counts the rows from 0. If it throws, the row has failed. */
export type RowMapper<Item, Deps = unknown> = (item: Item, index: number) => RowRun<Deps> | Promise<RowRun<Deps>>

/** Options of `map`. */
export interface MapOptions {
  /** The most runs that are in progress or have ended and wait for the reader. Default 4. */
  readonly concurrency?: number | undefined
  /** Money that the runs share. Default: the budget of the harness, if it has one. */
  readonly budget?: Budget | undefined
  /** Cancels the runs in progress and ends the batch: the iteration throws `cancelled`. */
  readonly signal?: AbortSignal | undefined
  /** Called after each change: a row began, or its run ended. */
  readonly onProgress?: ((progress: BatchProgress) => void) | undefined
  /** `ifExists` of the runs of rows with a `runId`, unless the row has its own. Default `continue`. */
  readonly ifExists?: RunOptions['ifExists']
}

/** The state of a batch. */
export interface BatchProgress {
  /** Rows whose runs have ended or are paused, failed ones included. */
  readonly done: number
  /** Rows that failed. */
  readonly failed: number
  /** Rows whose runs wait for people. */
  readonly paused: number
  /** Rows whose runs are in progress. */
  readonly running: number
  /** All rows, if `rows` is a list, a set or a map. */
  readonly total?: number
  /** US dollars of all runs that are done; null if a cost is unknown. */
  readonly costUsd: number | null
  /** Why no further rows begin although there may be more; null while they do. */
  readonly stopped: 'budget' | 'cancelled' | 'failed' | null
}

interface Row<Item> {
  readonly item: Item
  /** The id of the run; for a row without a run, an unused one. */
  readonly runId: string
}

/** The outcome of a row. */
export type MappedRow<Item, Output = string> =
  | (Row<Item> & { readonly status: 'completed'; readonly result: CompletedResult<Output>; readonly error?: undefined })
  | (Row<Item> & { readonly status: 'paused'; readonly result: PausedResult; readonly error?: undefined })
  | (Row<Item> & { readonly status: 'failed'; readonly error: HarnessError; readonly result?: undefined })

const CONCURRENCY = 4

/** The rows of a batch and how their runs are started. */
export interface MapWork<Item, Output, Deps> {
  readonly rows: Iterable<Item> | AsyncIterable<Item>
  readonly toRun: RowMapper<Item, Deps>
  readonly start: (prompt: Prompt, options: RunOptions<Deps>) => Promise<HarnessResult<Output>>
  readonly newRunId: () => string
}

/** Runs the rows and yields their outcomes. */
export async function* mapRows<Item, Output, Deps>(
  work: MapWork<Item, Output, Deps>,
  options: MapOptions,
): AsyncGenerator<MappedRow<Item, Output>, undefined> {
  const batch = new Batch(work, options)
  try {
    for (let row = await batch.next(); row !== null; row = await batch.next()) yield row
  } finally {
    await batch.close()
  }
}

class Batch<Item, Output, Deps> {
  readonly #work: MapWork<Item, Output, Deps>
  readonly #options: MapOptions
  readonly #source: AsyncGenerator<Item, void, undefined>
  readonly #abort = new AbortController()
  readonly #stopListening: () => void
  /** Outcomes that wait for the reader, in the order in which the runs ended. */
  readonly #ended: MappedRow<Item, Output>[] = []
  readonly #runs = new Set<Promise<void>>()
  readonly #counts = { done: 0, failed: 0, paused: 0, costUsd: 0 as number | null }
  #taken = 0
  #isFilling = false
  #isExhausted = false
  #stopped: BatchProgress['stopped'] = null
  /** The error of the iteration, thrown once the runs in progress have ended and were read. */
  #failure: { readonly thrown: unknown } | null = null
  #wake = (): void => undefined

  constructor(work: MapWork<Item, Output, Deps>, options: MapOptions) {
    this.#work = work
    this.#options = options
    this.#source = rowsOf(work.rows)
    const { signal } = options
    const cancel = (): void => {
      if (signal !== undefined) this.#fail(cancelledError(signal), 'cancelled')
    }
    this.#stopListening = signal === undefined ? () => undefined : listenToAbort(signal, cancel)
    if (signal?.aborted === true) cancel()
  }

  /** The next outcome; null after the last. */
  async next(): Promise<MappedRow<Item, Output> | null> {
    for (;;) {
      const row = this.#ended.shift()
      this.#fill()
      if (row !== undefined) return row
      if (this.#runs.size === 0 && this.#failure !== null) throw this.#failure.thrown
      if (this.#runs.size === 0 && !this.#isFilling) return null
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Cancels the rest and waits for it. */
  async close(): Promise<void> {
    this.#stopListening()
    this.#stopped ??= 'cancelled'
    this.#abort.abort(new HarnessError('cancelled', 'The reader of the batch has stopped.'))
    await Promise.all(this.#runs)
    // A source that is being asked is let go of.
    const closing = this.#isExhausted ? undefined : this.#source.return()
    if (this.#isFilling) Promise.resolve(closing).catch(() => undefined)
    else await closing
  }

  /** Begins rows while there is room. */
  #fill(): void {
    if (this.#isFilling || !this.#hasRoom) return
    this.#isFilling = true
    void this.#takeRows().finally(() => {
      this.#isFilling = false
      this.#wake()
    })
  }

  get #hasRoom(): boolean {
    const { concurrency = CONCURRENCY } = this.#options
    return !this.#isExhausted && this.#stopped === null && this.#runs.size + this.#ended.length < concurrency
  }

  async #takeRows(): Promise<void> {
    try {
      while (this.#hasRoom) {
        const next = await this.#source.next()
        if (next.done === true) this.#isExhausted = true
        // A row that came after the end is not begun.
        else if (this.#stopped === null) this.#begin(next.value)
      }
    } catch (thrown) {
      this.#isExhausted = true
      this.#fail(thrown, 'failed')
    }
  }

  #begin(item: Item): void {
    const run = this.#outcomeOf(item, this.#taken++).then((row) => {
      this.#runs.delete(run)
      this.#count(row)
      this.#ended.push(row)
      this.#wake()
      this.#report()
    })
    this.#runs.add(run)
    this.#report()
  }

  async #outcomeOf(item: Item, index: number): Promise<MappedRow<Item, Output>> {
    const work = this.#work
    const options = this.#options
    let runId: string | undefined
    try {
      const { prompt, given } = rowRun<Deps>(await work.toRun(item, index), index)
      runId = given.runId ?? work.newRunId()
      const { signal } = this.#abort
      const { budget = options.budget, ifExists = options.ifExists ?? 'continue' } = given
      const own = { runId, ifExists, ...(budget !== undefined && { budget }) }
      const shortages = shortagesOf(budget)
      const abort = given.signal === undefined ? signal : AbortSignal.any([signal, given.signal])
      const result = await work.start(prompt, { ...given, ...own, signal: abort }).catch((error: unknown) => {
        if (shortagesOf(budget) > shortages && codeOf(error) === 'limit_reached') this.#stopped ??= 'budget'
        throw error
      })
      return { item, runId, ...outcomeOf(result) }
    } catch (thrown) {
      const error = thrown instanceof HarnessError ? thrown : mapperError(thrown, index)
      // No further row could run.
      if (error.code === 'closed') this.#fail(error, 'failed')
      return { item, runId: runId ?? work.newRunId(), status: 'failed', error }
    }
  }

  #count(row: MappedRow<Item, Output>): void {
    const counts = this.#counts
    counts.done += 1
    if (row.status === 'failed') counts.failed += 1
    if (row.status === 'paused') counts.paused += 1
    const usage = row.status === 'failed' ? row.error.run?.usage : row.result.usage
    if (usage === undefined || usage.modelRequests === 0 || counts.costUsd === null) return
    counts.costUsd = usage.costUsd === null ? null : addDollars(counts.costUsd, usage.costUsd)
  }

  #report(): void {
    const onProgress: ((progress: BatchProgress) => unknown) | undefined = this.#options.onProgress
    if (onProgress === undefined) return
    const total = totalOf(this.#work.rows)
    const now = { ...this.#counts, running: this.#runs.size, stopped: this.#stopped }
    const failed = (thrown: unknown): void => {
      this.#fail(progressError(thrown), 'failed')
    }
    try {
      const later = onProgress(total === undefined ? now : { ...now, total })
      // It may be async.
      if (later instanceof Promise) later.catch(failed)
    } catch (thrown) {
      failed(thrown)
    }
  }

  /** Ends the batch: the runs in progress are cancelled, and the iteration throws after their outcomes. */
  #fail(thrown: unknown, stopped: 'cancelled' | 'failed'): void {
    this.#failure ??= { thrown }
    this.#stopped ??= stopped
    this.#abort.abort(thrown)
    this.#wake()
  }
}

/** Anything that the caller's rows throw, or give instead of rows, is an error of the batch. */
function rowsOf<Item>(rows: Iterable<Item> | AsyncIterable<Item>): AsyncGenerator<Item, void, undefined> {
  const failed = (cause: unknown): Error =>
    cause instanceof HarnessError
      ? cause
      : new HarnessError('error', `The rows of \`map\` cannot be read: ${messageOf(cause)}`, { cause })
  return itemsOf<Item>(() => rows, { expected: 'an iterable of rows', failed })
}

function progressError(cause: unknown): HarnessError {
  if (cause instanceof HarnessError) return cause
  return new HarnessError('error', `\`onProgress\` of \`map\` failed: ${messageOf(cause)}`, { cause })
}

function rowRun<Deps>(run: RowRun<Deps>, index: number): { readonly prompt: Prompt; readonly given: RunOptions<Deps> } {
  if (isObject(run) && 'prompt' in run) {
    const { prompt, ...given } = run as RowRun
    // All but the prompt are the options of a run.
    return { prompt, given: given as RunOptions<Deps> }
  }
  throw new HarnessError(
    'invalid_options',
    `Expected the function of \`map\` to return { prompt, … } for row ${index}, got ${shown(run)}.`,
  )
}

function outcomeOf<Output>(result: HarnessResult<Output>) {
  return result.status === 'completed' ? { status: result.status, result } : { status: result.status, result }
}

function mapperError(thrown: unknown, index: number): HarnessError {
  return new HarnessError('error', `The function of \`map\` failed for row ${index}: ${messageOf(thrown)}`, {
    cause: thrown,
  })
}

function shortagesOf(budget: Budget | undefined): number {
  return budget === undefined ? 0 : purseOf(budget).shortages
}

function codeOf(error: unknown): string | undefined {
  return error instanceof HarnessError ? error.code : undefined
}

/** Sums of micro-dollars are exact. */
function addDollars(one: number, other: number): number {
  return Math.round((one + other) * 1_000_000) / 1_000_000
}

function totalOf(rows: unknown): number | undefined {
  if (Array.isArray(rows)) return rows.length
  return rows instanceof Set || rows instanceof Map ? rows.size : undefined
}
