import { HarnessError } from '../../index.js'
import type { LogStore, RunLog } from '../../index.js'
import { Mailbox, sizeOfJson } from '../../util/queue/mailbox.js'
import { isStretchEnd } from '../projection.js'
import type { AnyRunEvent } from '../projection.js'
import { ChildRuns, OpenCalls } from './child-runs.js'
import type { LiveRun } from './live-run.js'
import { endsTurn, isDelta, joinedDeltas } from './open-turn.js'

export interface FollowRunOptions {
  /** Number of the last durable event that the reader has. Default 0: all events. */
  readonly after?: number | undefined
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal | undefined
  /** With the deltas of the reply that is arriving. Default true. */
  readonly deltas?: boolean | undefined
  /** With the events of child runs, each with the id and numbers of its own run. Default false. */
  readonly children?: boolean | undefined
  /** Number of a pause that is being continued: the stream goes on after it. Default: it ends at the last pause. */
  readonly beyond?: number | undefined
}

/** Where the events of a followed run come from. */
export interface Followed {
  readonly runId: string
  readonly log: RunLog | LogStore
  /** Null if this process does not see its events as they come. */
  readonly live: LiveRun | null
  /** The events that are stored after a cursor, by whatever process; null if they cannot be followed. */
  readonly follow:
    ((options: { readonly after: number; readonly signal: AbortSignal }) => AsyncIterable<AnyRunEvent>) | null
  /** Bytes that may wait for the reader. */
  readonly maxWaitingBytes: number
}

/** How often it is checked that the process that executes a run exists, in ms. */
const CHECK_MS = 1_000

/**
 * The events of one run up to its next pause or its end, in batches of what is there: stored ones, the reply that is arriving,
 * and then live ones; each once. Ends without an end of the run if its process has died, or has left it.
 */
export async function* followStretch(
  followed: Followed,
  { after = 0, signal, deltas = true, children = false, beyond = 0 }: FollowRunOptions,
): AsyncGenerator<readonly AnyRunEvent[], void, undefined> {
  const { runId, log, live, maxWaitingBytes } = followed
  const mailbox = new Mailbox({ maxSize: maxWaitingBytes, sizeOf, join: joinedDeltas })
  const stops = [live?.listen(mailbox), onAbort(signal, () => mailbox.close())]
  try {
    const reader = new Reader(runId, { after, deltas, beyond, children: children ? new ChildRuns(log) : null })
    // What is stored is there, also for a reader who has no time to wait.
    yield* reader.stored(log)
    if (reader.hasEnded() || isAborted(signal)) return
    if (live === null) {
      if (reader.isEmpty) throw new HarnessError('run_not_found', `The log has no run \`${runId}\`.`)
      yield* elsewhere(reader, followed, signal)
      return
    }
    // Deltas that wait have been added to the open reply already.
    const open = [...live.deltas]
    const waiting = mailbox.takeNow().filter((event) => !isDelta(event) || event.runId !== runId)
    const first = await reader.fresh([...waiting, ...open])
    if (first.length > 0) yield first
    while (!reader.hasEnded()) {
      const events = await mailbox.take()
      if (events === null)
        throw new HarnessError('closed', 'The reader is too far behind: follow again with its cursor.')
      if (events.length === 0) {
        // Its end can be stored without having been seen: of a run that was cancelled.
        if (!isAborted(signal)) yield* reader.stored(log)
        return
      }
      const batch = await reader.fresh(events)
      if (batch.length > 0) yield batch
    }
  } finally {
    for (const stop of stops) stop?.()
  }
}

/** A run of another process: what it stores, until it pauses, ends, or its process dies. */
async function* elsewhere(
  reader: Reader,
  { runId, log, follow }: Followed,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly AnyRunEvent[], void, undefined> {
  if (follow === null) return
  const over = new AbortController()
  const stop = onAbort(signal, () => over.abort())
  const check = async (): Promise<void> => {
    const summary = await (log as Partial<LogStore>).inspect?.({ kind: 'run', id: runId })
    if (summary === undefined) return
    if (summary === null || !('status' in summary) || summary.status !== 'running') over.abort()
  }
  await check()
  const timer = setInterval(() => void check().catch(() => undefined), CHECK_MS)
  try {
    for await (const event of follow({ after: reader.seq, signal: over.signal })) {
      const batch = await reader.fresh([event])
      if (batch.length > 0) yield batch
      if (reader.hasEnded()) return
    }
    // Events that were stored just before the run was found to be over.
    if (!isAborted(signal)) yield* reader.stored(log)
  } finally {
    clearInterval(timer)
    over.abort()
    stop()
  }
}

interface ReaderOptions {
  readonly after: number
  readonly deltas: boolean
  readonly beyond: number
  readonly children: ChildRuns | null
}

/** Events of a batch from the log, at most. */
const BATCH = 64

/** The place of one reader in a run. */
class Reader {
  readonly #runId: string
  readonly #options: ReaderOptions
  readonly #openCalls = new OpenCalls()
  /** Number of the request that has no reply yet; null: none has. */
  #turn: number | null = null
  #after: number
  #isOver = false
  /** No event of the run has been seen. */
  isEmpty = true

  constructor(runId: string, options: ReaderOptions) {
    this.#runId = runId
    this.#options = options
    this.#after = options.after
  }

  /** The run has paused or ended. */
  hasEnded(): boolean {
    return this.#isOver
  }

  /** Number of the last event that the reader has. */
  get seq(): number {
    return this.#after
  }

  /** The stored events after the cursor. */
  async *stored(log: RunLog | LogStore): AsyncGenerator<readonly AnyRunEvent[]> {
    const { children } = this.#options
    const after = this.#after
    let batch: AnyRunEvent[] = []
    // A reader who comes back is told whether a reply is arriving: the log is read from its beginning.
    for await (const event of log.read({ kind: 'run', id: this.#runId }, { after: this.isEmpty ? 0 : after })) {
      this.isEmpty = false
      const isNew = event.seq > after
      if (isNew && children !== null) for await (const child of children.before(event)) batch.push(child)
      this.#pass(event)
      if (isNew) batch.push(event)
      if (batch.length < BATCH) continue
      yield batch
      batch = []
    }
    if (children !== null && !this.#isOver)
      for await (const child of children.ofCalls(this.#runId, this.#openCalls)) batch.push(child)
    if (batch.length > 0) yield batch
  }

  /** Those of some events that the reader does not have, with the events of child runs that were not seen as they came. */
  async fresh(events: readonly AnyRunEvent[]): Promise<readonly AnyRunEvent[]> {
    const { children, deltas } = this.#options
    if (children === null) return events.filter((event) => event.runId === this.#runId && this.#takes(event))
    const batch: AnyRunEvent[] = []
    for (const event of events) {
      if (event.runId === this.#runId) {
        if (!this.#takes(event)) continue
        for await (const child of children.before(event)) batch.push(child)
      } else if ((!deltas && isDelta(event)) || !children.isNew(event)) continue
      batch.push(event)
    }
    return batch
  }

  #takes(event: AnyRunEvent): boolean {
    if (this.#isOver) return false
    if (event.durable) {
      if (event.seq <= this.#after) return false
      this.#pass(event)
      return true
    }
    // The end of a stretch that was refused before it began.
    if (event.seq < this.#after) return false
    if (event.kind === 'run_failed' || event.kind === 'run_left') {
      this.#isOver = true
      return event.kind === 'run_failed'
    }
    const isOfTurn = isDelta(event) || event.kind === 'deltas_withdrawn' || event.kind === 'output_delta'
    return !isOfTurn || (this.#options.deltas && this.#turn !== null && event.seq >= this.#turn)
  }

  #pass(event: AnyRunEvent): void {
    this.#openCalls.push(event)
    if (event.kind === 'model_request_started') this.#turn = event.seq
    else if (endsTurn(event.kind)) this.#turn = null
    this.#after = Math.max(this.#after, event.seq)
    this.#isOver = isStretchEnd(event) && event.seq > this.#options.beyond
  }
}

function sizeOf(event: AnyRunEvent): number {
  return isDelta(event) ? event.text.length : sizeOfJson(event)
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true
}

function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (isAborted(signal)) listener()
  signal?.addEventListener('abort', listener)
  return () => signal?.removeEventListener('abort', listener)
}
