import { HarnessError } from '#contracts/errors.js'
import type { Named } from '#core/extension/context.js'
import { redactedEvents } from '#core/extension/redact.js'
import type { Redact } from '#core/extension/redact.js'
import { eventsIn } from '#core/log/log.js'
import type { FollowOptions, LogStore, RunLog } from '#core/log/log.js'
import { runRef } from '#core/log/ref.js'
import type { EphemeralEvent, RunEvent } from '#core/state/events.js'
import type { RunListeners } from '#core/stream/queue.js'
import { isAborted } from '#util/abort.js'
import { isDelta } from '#util/queue/deltas.js'
import { polled } from '#util/queue/polled.js'
import { LiveEvents, tail } from '#util/queue/tail.js'
import type { TailReader } from '#util/queue/tail.js'

/** The runs that this process executes, as their followers see them. */
export class LiveRuns implements RunListeners {
  readonly listeners = new Map<string, Set<(event: RunEvent) => void>>()
  readonly #runs = new Map<string, LiveEvents<RunEvent>>()

  /** Calls `listener` with each event of a run in this process; returns how to stop. */
  listen(runId: string, listener: (event: RunEvent) => void): () => void {
    const listeners = this.listeners.get(runId) ?? new Set()
    this.listeners.set(runId, listeners.add(listener))
    return () => {
      if (listeners.delete(listener) && listeners.size === 0) this.listeners.delete(runId)
    }
  }

  /** A reply is kept from its first delta on, also for followers who come later. */
  onEphemeral(event: EphemeralEvent): void {
    if (isDelta(event)) this.of(event.runId)
  }

  /** The events of a run, for somebody who listens now. */
  of(runId: string): LiveEvents<RunEvent> {
    const known = this.#runs.get(runId)
    if (known !== undefined) return known
    const run = new LiveEvents<RunEvent>(() => {
      stopListening()
      this.#runs.delete(runId)
    })
    const stopListening = this.listen(runId, (event) => run.push(event))
    this.#runs.set(runId, run)
    return run
  }
}

/** A run to be followed. */
export interface RunToFollow {
  readonly runId: string
  readonly log: RunLog
  /** The run is in progress in this process. */
  readonly isOpen: boolean
  readonly live: LiveRuns
  readonly redact: readonly Named<Redact>[]
}

/** How long to wait before a log without `follow` is read again, in ms: shorter after an event, longer while nothing happens. */
const SHORTEST_WAIT_MS = 50
const LONGEST_WAIT_MS = 1000

/**
 * The events of a run, wherever it is executed: those of the log, then those that follow, across pauses, until the run ends.
 * A run of this process also gives its ephemeral events. Claims nothing. Rejects with `run_not_found` for an unknown run.
 */
export async function* followRun(
  run: RunToFollow,
  { after = 0, signal }: FollowOptions,
): AsyncGenerator<RunEvent, void, undefined> {
  for await (const batch of tail(new RunReader(run, after, signal), signal)) yield* batch
}

class RunReader implements TailReader<RunEvent> {
  readonly #run: RunToFollow
  readonly #signal: AbortSignal | undefined
  /** Number of the last event that the reader has. */
  #seq: number
  #isEmpty = true
  #isOver = false

  constructor(run: RunToFollow, after: number, signal: AbortSignal | undefined) {
    this.#run = run
    this.#signal = signal
    this.#seq = after
  }

  get live(): LiveEvents<RunEvent> {
    return this.#run.live.of(this.#run.runId)
  }

  isOver(): boolean {
    return this.#isOver
  }

  async *stored(): AsyncGenerator<readonly RunEvent[]> {
    const { log, redact, runId } = this.#run
    // The event at the reader's place is read too: it can be the end.
    const after = this.#isEmpty ? this.#seq - 1 : this.#seq
    for await (const event of redacted(eventsIn(log, runRef(runId), { after }), redact)) {
      if (isAborted(this.#signal)) return
      this.#isEmpty = false
      const isNew = event.seq > this.#seq
      this.#pass(event)
      if (isNew) yield [event]
    }
  }

  follow(signal: AbortSignal): AsyncIterable<RunEvent> {
    const { log, redact, runId, isOpen } = this.#run
    if (this.#isEmpty && !isOpen) throw new HarnessError('run_not_found', `The log has no run \`${runId}\`.`)
    const { follow } = log as Partial<LogStore>
    const [ref, after] = [runRef(runId), this.#seq]
    const times = { shortestMs: SHORTEST_WAIT_MS, longestMs: LONGEST_WAIT_MS }
    const events =
      follow === undefined
        ? polled((last) => eventsIn(log, ref, { after: last }), { after, signal, ...times })
        : (follow.call(log, ref, { after, signal }) as AsyncIterable<RunEvent>)
    return redacted(events, redact)
  }

  async take(events: readonly RunEvent[]): Promise<readonly RunEvent[]> {
    const taken: RunEvent[] = []
    for (const event of events) {
      // Another process has continued the run in the meantime.
      if (event.seq > this.#seq + (event.durable ? 1 : 0)) for await (const batch of this.stored()) taken.push(...batch)
      if (this.#isOver || isAborted(this.#signal)) break
      const isNew = event.durable ? event.seq > this.#seq : event.seq === this.#seq
      if (!isNew) continue
      this.#pass(event)
      taken.push(event)
    }
    return taken
  }

  #pass(event: RunEvent): void {
    this.#seq = Math.max(this.#seq, event.seq)
    this.#isOver = isEnd(event)
  }
}

function redacted(events: AsyncIterable<RunEvent>, redact: RunToFollow['redact']): AsyncIterable<RunEvent> {
  return redact.length === 0 ? events : redactedEvents(redact, events)
}

/** True if no event follows this one in this process, unless the run is retried. */
function isEnd(event: RunEvent): boolean {
  if (event.kind === 'run_left') return true
  return event.kind === 'run_failed' || (event.kind === 'run_completed' && event.pending.length === 0)
}
