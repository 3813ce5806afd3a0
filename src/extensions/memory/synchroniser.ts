import { HarnessError } from '#contracts/errors.js'
import type { DurableEvent } from '#core/state/events.js'
import type { JsonObject } from '#util/json.js'
import type { LogStore } from '#core/log/log.js'
import type { RunSummary } from '#core/log/run-summary.js'
import type { Generation, LogState, MemoryIndex, Scope, MemoryRow } from './memory-index.js'
import { memoryRef, ownerOfMemory, textsInMemory } from './memory-log.js'
import type { MemoryEvent } from './memory-log.js'
import { RunReader } from './run-reader.js'
import type { MemoryText } from './run-reader.js'
import { splitPieces } from './text-pieces.js'

export interface ReadingOptions {
  readonly log: LogStore
  readonly index: MemoryIndex
  readonly withResults: boolean
  /** Changes a text before it is indexed. */
  readonly redact: (text: string) => string
}

type KnownRun = Pick<RunSummary, 'runId' | 'startedAt' | 'metadata'>

interface Reading {
  readonly log: string
  readonly resourceId: string | null
  readonly generation: Generation
}

/** Keeps an index up to date with the logs. */
export class Synchroniser {
  readonly #options: ReadingOptions
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: ReadingOptions) {
    this.#options = options
  }

  /** Reads everything of an owner, or of all, that was stored before this call, and drops the rows of logs that are gone. */
  sync(scope: Scope): Promise<void> {
    const reading = this.#last.then(() => this.#readAll(scope))
    this.#last = reading.catch(() => undefined)
    return reading
  }

  async #readAll(scope: Scope): Promise<void> {
    const { log, index } = this.#options
    const generation = await index.prepare()
    const known = new Map(await index.states(scope))
    // Another log of that name: everything of the earlier one is removed.
    const isBehind = async (key: string, { began, seq }: Pick<LogState, 'began' | 'seq'>): Promise<boolean> => {
      const state = known.get(key)
      known.delete(key)
      if (state !== undefined && state.began !== began) await index.drop(key)
      return state?.began !== began || state.seq < seq
    }
    for await (const { resourceId, place } of this.#memories(scope)) {
      const key = `thread:${memoryRef(resourceId).id}`
      if (await isBehind(key, place)) await this.#readMemory(resourceId, place.began, generation)
    }
    const runs: KnownRun[] = []
    const resourceId = scope === 'all' ? undefined : (scope.resourceId ?? undefined)
    for await (const { runId, status, startedAt, lastSeq, metadata } of log.list({ parentRunId: null, resourceId })) {
      // What is known of it stays: whose it is may not be readable.
      if (status === 'unreadable') known.delete(`run:${runId}`)
      if (status === 'unreadable') continue
      if (scope !== 'all' && metadataResource(metadata) !== scope.resourceId) continue
      if (await isBehind(`run:${runId}`, { began: startedAt, seq: lastSeq })) runs.push({ runId, startedAt, metadata })
    }
    // A run comes after the one whose conversation it continues.
    for (const run of runs.reverse()) await this.#readRun(run, generation)
    for (const key of known.keys()) await index.drop(key)
  }

  async *#memories(scope: Scope): AsyncGenerator<{
    readonly resourceId: string | null
    readonly place: Pick<LogState, 'began' | 'seq'>
  }> {
    const { log } = this.#options
    if (scope !== 'all') {
      const found = await log.inspect(memoryRef(scope.resourceId))
      if (found !== null) yield { resourceId: scope.resourceId, place: { began: found.createdAt, seq: found.lastSeq } }
      return
    }
    for await (const { threadId, createdAt, lastSeq } of log.list({ kind: 'thread' })) {
      const owner = ownerOfMemory(threadId)
      if (owner !== null) yield { ...owner, place: { began: createdAt, seq: lastSeq } }
    }
  }

  async #readMemory(resourceId: string | null, began: string, generation: Generation): Promise<void> {
    const ref = memoryRef(resourceId)
    const { log } = this.#options
    await this.#read({ log: `thread:${ref.id}`, resourceId, generation }, async (known, batch) => {
      for await (const event of log.read<MemoryEvent>(ref, { after: known?.seq ?? 0 })) {
        const forgotten = event.kind === 'memory_forgotten' ? event.handles : []
        await batch.add(textsInMemory(event), { seq: event.seq, began, threadId: '', sources: [] }, forgotten)
      }
    })
  }

  async #readRun({ runId, startedAt, metadata }: KnownRun, generation: Generation): Promise<void> {
    const { log, withResults } = this.#options
    await this.#read(
      { log: `run:${runId}`, resourceId: metadataResource(metadata), generation },
      async (known, batch) => {
        const reader = new RunReader(runId, known?.sources ?? [], withResults)
        let threadId = known?.threadId ?? metadataThread(metadata) ?? runId
        for await (const event of log.read({ kind: 'run', id: runId }, { after: known?.seq ?? 0 })) {
          if (event.kind === 'run_started' && known === null) {
            const before = await this.#continued(event, generation)
            if (before !== null) {
              reader.readBefore(before.sources)
              threadId = metadataThread(metadata) ?? before.threadId
            }
          }
          const texts = reader.textsIn(event)
          await batch.add(texts, { seq: event.seq, began: startedAt, threadId, sources: reader.sources })
        }
      },
    )
  }

  /** What the index knows of the run that this one continues; null if it continues none that is there. */
  async #continued(
    { history }: DurableEvent & { kind: 'run_started' },
    generation: Generation,
  ): Promise<LogState | null> {
    if (!('runId' in history)) return null
    const { log, index } = this.#options
    const key = `run:${history.runId}`
    const known = await index.state(key)
    if (known !== null) return known
    const run = await log.inspect({ kind: 'run', id: history.runId })
    if (run === null) return null
    await this.#readRun(run, generation)
    return index.state(key)
  }

  /** Reads a log from where the index knows it, and on from there if another process has done the same. */
  async #read(reading: Reading, work: (known: LogState | null, batch: Batch) => Promise<void>): Promise<void> {
    const { index, redact } = this.#options
    for (;;) {
      const known = await index.state(reading.log)
      const batch = new Batch(index, { ...reading, after: known?.seq ?? 0, redact })
      try {
        await work(known, batch)
      } catch (error) {
        // The events before the damage count.
        if (!(error instanceof HarnessError && error.code === 'invalid_log')) throw error
      }
      if (await batch.flush()) return
      // Rows were erased: what was listed before that may be gone.
      if ((await index.prepare()) !== reading.generation) return
    }
  }
}

/** The owner that a run's metadata names: sessions set it. */
export function metadataResource(metadata: JsonObject): string | null {
  return filledString(metadata['resourceId'])
}

/** The conversation that a run's metadata names: sessions set it. */
export function metadataThread(metadata: JsonObject): string | null {
  return filledString(metadata['conversation_id'])
}

function filledString(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

/** Rows that are stored together. */
const TOGETHER = 500

interface BatchOptions {
  /** The key of the log. */
  readonly log: string
  readonly resourceId: string | null
  readonly generation: Generation
  /** The last event that the index has. */
  readonly after: number
  readonly redact: (text: string) => string
}

/** Rows of a log on their way into the index. */
class Batch {
  readonly #index: MemoryIndex
  readonly #options: BatchOptions
  #after: number
  #state: LogState | null = null
  #rows: MemoryRow[] = []
  #forgotten: string[] = []
  #isRefused = false

  constructor(index: MemoryIndex, options: BatchOptions) {
    this.#index = index
    this.#options = options
    this.#after = options.after
  }

  /** Adds the texts of the event at which the log has this state. */
  async add(texts: readonly MemoryText[], state: LogState, forgotten: readonly string[] = []): Promise<void> {
    for (const { handle, kind, at, text, sources, threadId = state.threadId } of texts) {
      splitPieces(this.#options.redact(text)).forEach((piece, part) => {
        this.#rows.push({ handle, part, kind, at, text: piece, sources, threadId })
      })
    }
    this.#forgotten.push(...forgotten)
    this.#state = state
    if (this.#rows.length >= TOGETHER) await this.flush()
  }

  /** Stores what there is. False if another process was faster, or rows were erased. */
  async flush(): Promise<boolean> {
    if (this.#isRefused || this.#state === null) return !this.#isRefused
    const { log, resourceId, generation } = this.#options
    const update = {
      log,
      resourceId,
      after: this.#after,
      state: this.#state,
      rows: this.#rows,
      forgotten: this.#forgotten,
    }
    this.#isRefused = !(await this.#index.put(update, generation))
    this.#after = this.#state.seq
    this.#state = null
    this.#rows = []
    this.#forgotten = []
    return !this.#isRefused
  }
}
