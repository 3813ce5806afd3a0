import type { HarnessStream } from '#core/stream/stream.js'
import type { LogStore, RunLog } from '#core/log/log.js'
import type { AnyRunEvent } from '../projection.js'
import { followStretch, LiveRun } from './follow-stretch.js'
import type { FollowRunOptions } from './follow-stretch.js'

export interface HubOptions {
  /** The log of the runs. */
  readonly log: RunLog | LogStore
  /** The bytes that may wait for one reader; one that is further behind gets the rest from the log. Default 1,048,576. */
  readonly maxWaitingBytes?: number | undefined
}

/** Reads each run of this process once, and serves any number of readers: no reader holds a run up, or ends it. */
export class Hub {
  readonly #log: RunLog | LogStore
  readonly #maxWaitingBytes: number | undefined
  readonly #live = new Map<string, LiveRun>()
  readonly #streams = new Map<string, HarnessStream<unknown>>()

  constructor({ log, maxWaitingBytes }: HubOptions) {
    this.#log = log
    this.#maxWaitingBytes = maxWaitingBytes
  }

  /**
   * Takes a run that was just begun and reads it to its pause or end, whatever its readers do. Resolves at its first event;
   * rejects with the error of a run that was refused: it has no events.
   */
  async start(run: HarnessStream<unknown>): Promise<void> {
    const live = this.open(run.runId)
    this.#streams.set(run.runId, run)
    // The failure of a run that has begun is its last event.
    await new Promise<void>((begun, refused) => void this.#read(run, live, begun).then(begun, refused))
  }

  async #read(run: HarnessStream<unknown>, live: LiveRun, onEvents: () => void): Promise<void> {
    try {
      for await (const batch of run.batches()) {
        // A stretch that is refused before it begins has one event, which is none of the run.
        if (batch.some(isRefusal)) await run.result
        for (const event of batch) live.push(event)
        onEvents()
      }
    } finally {
      await run.result.catch(() => undefined)
      this.#streams.delete(run.runId)
      this.close(live)
    }
  }

  /**
   * The events of a run from a cursor on: stored ones, the open reply, then live ones, without a gap or a duplicate, up to its
   * next pause or its end. A run of another process is followed by its log: without deltas. Ends without an end of the run if its
   * process has died. A reader who is too far behind gets the rest from the log. Throws `run_not_found`.
   */
  async *follow(runId: string, options: FollowRunOptions = {}): AsyncGenerator<AnyRunEvent, void, undefined> {
    for await (const batch of this.batches(runId, options)) yield* batch
  }

  /** The same events as `follow`, all that are there at once. */
  batches(runId: string, options: FollowRunOptions = {}): AsyncGenerator<readonly AnyRunEvent[], void, undefined> {
    const live = this.#live.get(runId) ?? null
    return followStretch({ runId, log: this.#log, live, maxWaiting: this.#maxWaitingBytes }, options)
  }

  /** True if the events of the run are seen here as they come, with deltas. */
  isLive(runId: string): boolean {
    return this.#live.has(runId)
  }

  /** Cancels a run that this hub has started; false if it is not in progress here. */
  async cancel(runId: string): Promise<boolean> {
    const stream = this.#streams.get(runId)
    await stream?.cancel()
    return stream !== undefined
  }

  /** A run whose events the caller passes on as they come, until `close`. */
  open(runId: string): LiveRun {
    const live = new LiveRun(runId)
    this.#live.get(runId)?.close()
    this.#live.set(runId, live)
    return live
  }

  close(live: LiveRun): void {
    if (this.#live.get(live.runId) === live) this.#live.delete(live.runId)
    live.close()
  }
}

function isRefusal({ kind, durable, seq }: AnyRunEvent): boolean {
  return kind === 'run_failed' && !durable && seq === 0
}

/** A hub over the log of the runs. */
export function createHub(options: HubOptions): Hub {
  return new Hub(options)
}
