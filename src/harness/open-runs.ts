import { copyOfBudgets } from './default-limits.js'
import { inputPort } from './input-port.js'
import type { CloseOptions, RunOptions } from './options.js'
import { HarnessError } from '#contracts/errors.js'
import type { HarnessResult } from '#contracts/result.js'
import type { Readers } from '#core/extension/readers.js'
import { asLogStore, eventsIn } from '#core/log/log.js'
import type { RunLog, FollowOptions, LogStore } from '#core/log/log.js'
import { runRef } from '#core/log/ref.js'
import type { EphemeralEvent, RunEvent, StreamEvent } from '#core/state/events.js'
import type { InputPort } from '#core/stream/input.js'
import { EventQueue } from '#core/stream/queue.js'
import type { RunListeners } from '#core/stream/queue.js'
import type { StreamedRun } from '#core/stream/stream.js'
import { LEAVE_GRACE_MS, RunAbort, isAborted } from '#util/abort.js'
import { isDelta } from '#util/queue/deltas.js'
import { pollEvents } from '#util/queue/polled.js'
import { LiveEvents, tail } from '#util/queue/tail.js'
import type { TailReader } from '#util/queue/tail.js'
import { sleep } from '#util/timeout.js'

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

/** A child run in progress. */
interface OpenChild extends Pick<OpenRun, 'abort' | 'log'> {
  readonly outcome: Promise<unknown>
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
  /** Child runs in progress, by id. */
  readonly #below = new Map<string, OpenChild>()
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

  /** Knows a child run for as long as it is in progress. */
  openBelow(runId: string, child: OpenChild): void {
    this.#below.set(runId, child)
    const close = (): void => {
      if (this.#below.get(runId) === child) this.#below.delete(runId)
    }
    child.outcome.then(close, close)
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
    return ([...this.#outcomes.keys()].find((run) => run.runId === runId) ?? this.#below.get(runId))?.log
  }

  /** Cancels the run of that id, if it is in progress here. True if it ended as cancelled. */
  async cancel(runId: string, reason: HarnessError): Promise<boolean> {
    const below = this.#below.get(runId)
    const open = [...this.#outcomes].flatMap(([run, outcome]) =>
      run.runId === runId ? [{ abort: run.abort, outcome }] : [],
    )
    for (const { abort, outcome } of below === undefined ? open : [...open, below]) {
      abort.cancel(reason)
      const [{ status }] = await Promise.allSettled([outcome])
      if (status === 'rejected' && abort.byCaller) return true
    }
    return false
  }

  /** Waits for the runs in progress, which are finished, left or cancelled. */
  async close({ runs, timeoutMs }: CloseOptions): Promise<void> {
    const outcomes = [...this.#outcomes.values()]
    if (runs === 'finish') await waitUntilSettled(outcomes, timeoutMs)
    const graceMs = runs === 'finish' ? 0 : (timeoutMs ?? LEAVE_GRACE_MS)
    for (const { log, abort } of this.#outcomes.keys()) {
      const isLeft = runs === 'leave' || (runs !== 'cancel' && asLogStore(log).outlives === true)
      if (isLeft) abort.leave({ reason: leftError(), graceMs })
      else abort.cancel(new HarnessError('closed', 'The harness was closed.'))
    }
    await Promise.allSettled(outcomes)
  }
}

/** Resolves when all have settled, or the time is over. */
async function waitUntilSettled(outcomes: readonly Promise<unknown>[], timeoutMs: number | undefined): Promise<void> {
  const over = new AbortController()
  const all = Promise.allSettled(outcomes).finally(() => over.abort())
  if (timeoutMs === undefined) await all
  else await sleep(timeoutMs, over.signal).catch(() => undefined)
}

function leftError(): HarnessError {
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

/** The runs that this process executes, as their followers see them. */
class LiveRuns implements RunListeners {
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
  readonly readers: Readers
}

/** How long to wait before a log without `follow` is read again, in ms: shorter after an event, longer while nothing happens. */
const SHORTEST_WAIT_MS = 50
const LONGEST_WAIT_MS = 1000

/**
 * The events of a run, wherever it is executed: those of the log, then those that follow, across pauses, until the run ends.
 * A run of this process also gives its ephemeral events. Claims nothing. Rejects with `run_not_found` for an unknown run, and
 * with `invalid_log` for one whose log begins in an unknown version.
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
    const { log, readers, runId } = this.#run
    // The event at the reader's place is read too: it can be the end.
    const after = this.#isEmpty ? this.#seq - 1 : this.#seq
    for await (const event of shownEvents(readers, eventsIn(log, runRef(runId), { after }))) {
      if (isAborted(this.#signal)) return
      if (event.kind === 'run_started' || event.kind === 'run_queued')
        (await import('#run/resume/read-log.js')).checkVersion(event)
      this.#isEmpty = false
      const isNew = event.seq > this.#seq
      this.#pass(event)
      if (isNew) yield [event]
    }
  }

  follow(signal: AbortSignal): AsyncIterable<RunEvent> {
    const { log, readers, runId, isOpen } = this.#run
    if (this.#isEmpty && !isOpen) throw new HarnessError('run_not_found', `The log has no run \`${runId}\`.`)
    const { follow } = log as Partial<LogStore>
    const [ref, after] = [runRef(runId), this.#seq]
    const times = { shortestMs: SHORTEST_WAIT_MS, longestMs: LONGEST_WAIT_MS }
    const events =
      follow === undefined
        ? pollEvents((last) => eventsIn(log, ref, { after: last }), { after, signal, ...times })
        : (follow.call(log, ref, { after, signal }) as AsyncIterable<RunEvent>)
    return shownEvents(readers, events)
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

async function* shownEvents(readers: Readers, events: AsyncIterable<RunEvent>): AsyncGenerator<RunEvent> {
  for await (const event of events) yield readers.event(event as StreamEvent)
}

/** True if no event follows this one in this process, unless the run is retried. */
function isEnd(event: RunEvent): boolean {
  if (event.kind === 'run_left') return true
  return event.kind === 'run_failed' || (event.kind === 'run_completed' && event.pending.length === 0)
}
