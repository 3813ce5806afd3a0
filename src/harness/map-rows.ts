import { HarnessError, cancelledError, messageOf } from '#contracts/errors.js'
import type { CompletedResult, HarnessResult, PausedResult } from '#contracts/result.js'
import { moneyOf } from '#run/money/budget.js'
import type { Budget } from '#run/money/budget.js'
import { listenToAbort } from '#util/abort.js'
import { isObject } from '#util/json.js'
import { shownValue } from '#util/mismatch.js'
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
  /** Called after each change: a row began, or its run ended. If it throws, the batch ends. */
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

/** The rows of a batch and how their runs are started. */
export interface MapWork<Item, Output, Deps> {
  readonly rows: Iterable<Item> | AsyncIterable<Item>
  readonly toRun: RowMapper<Item, Deps>
  readonly start: (prompt: Prompt, options: RunOptions<Deps>) => Promise<HarnessResult<Output>>
  readonly newRunId: () => string
}

/** Runs the rows and yields their outcomes in the order in which the runs end. */
export async function* mapRows<Item, Output, Deps>(
  work: MapWork<Item, Output, Deps>,
  options: MapOptions,
): AsyncGenerator<MappedRow<Item, Output>, undefined> {
  const batch = new Batch(work, options)
  const { signal } = options
  const cancel = (): void => {
    if (signal !== undefined) batch.fail(cancelledError(signal), 'cancelled')
  }
  const stopListening = signal === undefined ? () => undefined : listenToAbort(signal, cancel)
  if (signal?.aborted === true) cancel()
  try {
    for (let row = await batch.next(); row !== null; row = await batch.next()) yield row
  } finally {
    stopListening()
    await batch.close()
  }
}

class Batch<Item, Output, Deps> {
  readonly #work: MapWork<Item, Output, Deps>
  readonly #options: MapOptions
  readonly #source: AsyncIterator<Item> | Iterator<Item>
  readonly #abort = new AbortController()
  /** Outcomes that wait for the reader. */
  readonly #ended: MappedRow<Item, Output>[] = []
  readonly #runs = new Set<Promise<void>>()
  readonly #counts = { done: 0, failed: 0, paused: 0, costUsd: 0 as number | null }
  #nextIndex = 0
  /** The rows that are being taken from the source. */
  #filling: Promise<void> | null = null
  #isExhausted = false
  #stopped: BatchProgress['stopped'] = null
  /** The error of the iteration, thrown once the runs in progress have ended and were read. */
  #failure: { readonly thrown: unknown } | null = null
  #wake = (): void => undefined

  constructor(work: MapWork<Item, Output, Deps>, options: MapOptions) {
    this.#work = work
    this.#options = options
    const { rows } = work
    this.#source = Symbol.asyncIterator in rows ? rows[Symbol.asyncIterator]() : rows[Symbol.iterator]()
  }

  /** The next outcome; null after the last. */
  async next(): Promise<MappedRow<Item, Output> | null> {
    for (;;) {
      const row = this.#ended.shift()
      if (this.#hasRoom) {
        this.#filling ??= this.#fill().finally(() => {
          this.#filling = null
          this.#wake()
        })
      }
      if (row !== undefined) return row
      if (this.#runs.size === 0 && this.#failure !== null) throw this.#failure.thrown
      if (this.#runs.size === 0 && this.#filling === null) return null
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Cancels the rest and waits for it. A source that is being asked for a row is closed when it has answered. */
  async close(): Promise<void> {
    this.#stopped ??= 'cancelled'
    this.#abort.abort(new HarnessError('cancelled', 'The reader of the batch has stopped.'))
    await Promise.all(this.#runs)
    const closeSource = async (): Promise<void> => {
      if (!this.#isExhausted) await this.#source.return?.()
    }
    if (this.#filling === null) await closeSource()
    else void this.#filling.then(closeSource)
  }

  /** Ends the batch: the runs in progress are cancelled, and the iteration throws after their outcomes. */
  fail(thrown: unknown, stopped: 'cancelled' | 'failed'): void {
    this.#failure ??= { thrown }
    this.#stopped ??= stopped
    this.#abort.abort(thrown)
    this.#wake()
  }

  get #hasRoom(): boolean {
    const { concurrency = 4 } = this.#options
    return !this.#isExhausted && this.#stopped === null && this.#runs.size + this.#ended.length < concurrency
  }

  /** Begins rows while there is room. */
  async #fill(): Promise<void> {
    try {
      while (this.#hasRoom) {
        const next = await this.#source.next()
        if (next.done === true) this.#isExhausted = true
        // A row that came after the end is not begun.
        else if (this.#stopped === null) this.#begin(next.value)
      }
    } catch (thrown) {
      this.#isExhausted = true
      this.fail(thrown, 'failed')
    }
  }

  #begin(item: Item): void {
    const run = this.#outcomeOf(item, this.#nextIndex++).then((row) => {
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
    const { toRun, start, newRunId } = this.#work
    let runId: string | undefined
    try {
      const { prompt, ...row } = checkedRow(await toRun(item, index), index)
      runId = row.runId ?? newRunId()
      const budget = row.budget ?? this.#options.budget
      const ifExists = row.ifExists ?? this.#options.ifExists ?? 'continue'
      const signal = AbortSignal.any([this.#abort.signal, ...(row.signal === undefined ? [] : [row.signal])])
      const shortages = shortagesOf(budget)
      const result = await start(prompt, { ...row, runId, ifExists, budget, signal }).catch((error: unknown) => {
        const isShort = error instanceof HarnessError && error.code === 'limit_reached'
        if (isShort && shortagesOf(budget) > shortages) this.#stopped ??= 'budget'
        throw error
      })
      if (result.status === 'paused') return { item, runId, status: 'paused', result }
      return { item, runId, status: 'completed', result }
    } catch (thrown) {
      const message = `The function of \`map\` failed for row ${index}: ${messageOf(thrown)}`
      const error = thrown instanceof HarnessError ? thrown : new HarnessError('error', message, { cause: thrown })
      // No further row could run.
      if (error.code === 'closed') this.fail(error, 'failed')
      return { item, runId: runId ?? newRunId(), status: 'failed', error }
    }
  }

  #count(row: MappedRow<Item, Output>): void {
    const counts = this.#counts
    counts.done += 1
    if (row.status !== 'completed') counts[row.status] += 1
    const usage = row.status === 'failed' ? row.error.run?.usage : row.result.usage
    if (usage === undefined || usage.modelRequests === 0 || counts.costUsd === null) return
    // Sums of micro-dollars are exact.
    const micros = usage.costUsd === null ? null : Math.round((counts.costUsd + usage.costUsd) * 1_000_000)
    counts.costUsd = micros === null ? null : micros / 1_000_000
  }

  #report(): void {
    const { rows } = this.#work
    const total = Array.isArray(rows) ? rows.length : rows instanceof Set || rows instanceof Map ? rows.size : undefined
    const progress = { ...this.#counts, running: this.#runs.size, stopped: this.#stopped }
    try {
      this.#options.onProgress?.(total === undefined ? progress : { ...progress, total })
    } catch (thrown) {
      this.fail(thrown, 'failed')
    }
  }
}

function checkedRow<Deps>(row: RowRun<Deps>, index: number): RowRun<Deps> {
  if (isObject(row) && 'prompt' in row) return row
  const message = `Expected the function of \`map\` to return { prompt, … } for row ${index}, got ${shownValue(row)}.`
  throw new HarnessError('invalid_options', message)
}

function shortagesOf(budget: Budget | undefined): number {
  return budget === undefined ? 0 : moneyOf(budget).shortages
}
