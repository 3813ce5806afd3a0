import { HarnessError } from '#contracts/errors.js'
import type { LogStore, RunLog } from '#core/log/log.js'
import { isAborted } from '#util/abort.js'
import { endsReply, isDelta } from '#util/queue/deltas.js'
import { LiveEvents, tail, untilOver } from '#util/queue/tail.js'
import type { TailReader } from '#util/queue/tail.js'
import { isStretchEnd } from '../projection.js'
import type { AnyRunEvent } from '../projection.js'
import { ChildRuns, OpenCalls } from './child-runs.js'

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

/** A run whose events this process sees as they come. */
export class LiveRun extends LiveEvents<AnyRunEvent> {
  readonly runId: string

  constructor(runId: string) {
    super()
    this.runId = runId
  }

  /** Takes an event of the run, or of one of its child runs. */
  override push(event: AnyRunEvent): void {
    super.push(event, event.runId === this.runId)
  }
}

/** Where the events of a followed run come from. */
export interface HubRun {
  readonly runId: string
  readonly log: RunLog | LogStore
  /** Null if this process does not see its events as they come. */
  readonly live: LiveRun | null
  /** The characters that may wait for the reader. */
  readonly maxWaiting: number | undefined
}

/**
 * The events of one run up to its next pause or its end, in batches of what is there: stored ones, the reply that is arriving,
 * and then live ones; each once. Ends without an end of the run if its process has died, or has left it.
 */
export async function* followStretch(
  run: HubRun,
  options: FollowRunOptions,
): AsyncGenerator<readonly AnyRunEvent[], void, undefined> {
  const { signal } = options
  const reader = new StretchReader(run, options)
  yield* tail(reader, signal, run.maxWaiting)
  // The end can be stored without having been seen: of a run that was cancelled, or whose process has died.
  if (!reader.isOver() && !isAborted(signal)) yield* reader.stored()
}

/** Events of a batch from the log, at most. */
const BATCH = 64

/** One reader of a run, and the reader's place in it. */
class StretchReader implements TailReader<AnyRunEvent> {
  readonly #run: HubRun
  readonly #deltas: boolean
  readonly #beyond: number
  readonly #children: ChildRuns | null
  readonly #openCalls = new OpenCalls()
  /** Number of the request that has no reply yet, and whose deltas the reader gets; null: there is none. */
  #turn: number | null = null
  /** Number of the last event that the reader has. */
  #seq: number
  /** No event of the run has been seen. */
  #isEmpty = true
  /** The run has paused or ended. */
  #isOver = false

  constructor(run: HubRun, { after = 0, deltas = true, children = false, beyond = 0 }: FollowRunOptions) {
    this.#run = run
    this.#seq = after
    this.#deltas = deltas
    this.#beyond = beyond
    this.#children = children ? new ChildRuns(run.log) : null
  }

  get live(): LiveRun | null {
    return this.#run.live
  }

  isOver(): boolean {
    return this.#isOver
  }

  async *stored(): AsyncGenerator<readonly AnyRunEvent[]> {
    const { runId, log } = this.#run
    const children = this.#children
    const last = this.#seq
    let batch: AnyRunEvent[] = []
    // A reader who comes back is told whether a reply is arriving: the log is read from its beginning.
    for await (const event of log.read({ kind: 'run', id: runId }, { after: this.#isEmpty ? 0 : last })) {
      this.#isEmpty = false
      const isNew = event.seq > last
      if (isNew && children !== null) for await (const child of children.before(event)) batch.push(child)
      this.#pass(event)
      if (isNew) batch.push(event)
      if (batch.length < BATCH) continue
      yield batch
      batch = []
    }
    if (children !== null && !this.#isOver)
      for await (const child of children.ofCalls(runId, this.#openCalls)) batch.push(child)
    if (batch.length > 0) yield batch
  }

  /** The events of a run of another process. */
  follow(signal: AbortSignal): AsyncIterable<AnyRunEvent> | null {
    const { runId, live } = this.#run
    if (live !== null) return null
    if (this.#isEmpty) throw new HarnessError('run_not_found', `The log has no run \`${runId}\`.`)
    return untilOver(
      (over) => this.#follow(over),
      () => this.#isLeft(),
      signal,
    )
  }

  async take(events: readonly AnyRunEvent[]): Promise<readonly AnyRunEvent[]> {
    const children = this.#children
    const { runId } = this.#run
    if (children === null) return events.filter((event) => event.runId === runId && this.#takes(event))
    const batch: AnyRunEvent[] = []
    for (const event of events) {
      if (event.runId === runId) {
        if (!this.#takes(event)) continue
        for await (const child of children.before(event)) batch.push(child)
      } else if ((!this.#deltas && isDelta(event)) || !children.isNew(event)) continue
      batch.push(event)
    }
    return batch
  }

  async *#follow(signal: AbortSignal): AsyncGenerator<AnyRunEvent> {
    if (await this.#isLeft()) return
    const { runId, log } = this.#run
    const events = (log as Partial<LogStore>).follow?.({ kind: 'run', id: runId }, { after: this.#seq, signal })
    if (events !== undefined) yield* events
  }

  /** No process executes the run. */
  async #isLeft(): Promise<boolean> {
    const summary = await (this.#run.log as Partial<LogStore>).inspect?.({ kind: 'run', id: this.#run.runId })
    return summary !== undefined && summary?.status !== 'running'
  }

  #takes(event: AnyRunEvent): boolean {
    if (this.#isOver) return false
    if (event.durable) {
      if (event.seq <= this.#seq) return false
      this.#pass(event)
      return true
    }
    // The end of a stretch that was refused before it began.
    if (event.seq < this.#seq) return false
    if (event.kind === 'run_failed' || event.kind === 'run_left') {
      this.#isOver = true
      return event.kind === 'run_failed'
    }
    const isOfReply = isDelta(event) || event.kind === 'deltas_withdrawn' || event.kind === 'output_delta'
    return !isOfReply || (this.#deltas && this.#turn !== null && event.seq >= this.#turn)
  }

  #pass(event: AnyRunEvent): void {
    this.#openCalls.push(event)
    if (event.kind === 'model_request_started') this.#turn = event.seq
    else if (endsReply(event.kind)) this.#turn = null
    this.#seq = Math.max(this.#seq, event.seq)
    this.#isOver = isStretchEnd(event) && event.seq > this.#beyond
  }
}
