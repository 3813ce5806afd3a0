import { messageOf } from '#contracts/errors.js'
import type { RequestConstants } from '../model-session.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import type { RequestKind, RunEvent } from '../state/events.js'
import { warn } from '#util/platform/node.js'
import { atOnce } from '#util/wrapped.js'

/**
 * Traces runs. A reader of the log: it changes nothing, and an error that it throws never ends a run.
 * One object may serve any number of runs and harnesses at once.
 */
export interface Tracing {
  /**
   * Loads what it needs. Awaited once before the first run, in the caller's own context. A rejection, such as of a
   * package that is not installed, fails the run.
   */
  load?(): Promise<void>
  /** A run begins or continues. Called within the caller's own (OpenTelemetry) context, after `load`. */
  startRun(run: TracedRun): RunTrace
  /** Resolves when everything traced so far has been exported. Called when a harness is closed. */
  flush?(): Promise<void>
}

/** A run as its trace knows it at the start. */
export interface TracedRun {
  readonly runId: string
  /** The run whose tool call started this one; null at the top. */
  readonly parentRunId: string | null
  readonly parentToolCallId: string | null
  /** Name of the subagent; null at the top. */
  readonly agentName: string | null
  readonly metadata: JsonObject
  /** Absolute path of the workspace. */
  readonly root: string
  /** The time when it begins or continues, as in events. */
  readonly at: string
  /** The run continues after a pause or a crash: it was traced before under the same run id. */
  readonly resumed: boolean
  /** `RunTrace.traceparent` of the run's first trace, if the run continues; else null. */
  readonly traceparent: string | null
}

/** The trace of one run. Nothing in it may wait: each call returns at once. */
export interface RunTrace {
  /** Every durable event in order, once it is kept; of the ephemeral ones `transport_retry` and an unkept `run_failed`. */
  event(event: RunEvent): void
  /** W3C `traceparent` of the run's span, kept in `run_started`: with it the trace continues after a pause or a crash. */
  readonly traceparent?: string | null
  /** The parts of every request of the run other than the transcript. */
  constants?(constants: RequestConstants): void
  /**
   * Does `work` inside the context of its span, so that spans of the code in it nest rightly. Calls `work` exactly once,
   * immediately, and returns its return value.
   */
  within?<T>(scope: TraceScope, work: () => T): T
}

/** The work that `within` wraps: a request to the model, or the handler of a tool call. */
export type TraceScope =
  { readonly kind: 'turn'; readonly requestKind: RequestKind } | { readonly kind: 'tool'; readonly callId: string }

/** The traces of one run, by every tracing; a failure of one is reported once and harms nobody. */
export class RunTracer {
  readonly #tracings: readonly Tracing[]
  #traces: readonly SafeTrace[] = []

  constructor(tracings: readonly Tracing[]) {
    this.#tracings = tracings
  }

  /** Loads what every tracing needs. */
  async load(): Promise<void> {
    for (const tracing of this.#tracings) await tracing.load?.()
  }

  /** Starts the traces. To be called in the caller's own context, after `load`; before it nothing is traced. */
  open(run: () => TracedRun): void {
    const traced = run()
    this.#traces = this.#tracings.flatMap((tracing): SafeTrace[] => {
      try {
        const trace: unknown = atOnce('`startRun`', tracing.startRun(traced))
        // Nothing: this run is not traced.
        return isObject(trace) ? [new SafeTrace(tracing, trace as unknown as RunTrace)] : []
      } catch (thrown) {
        reportOnce(tracing, thrown)
        return []
      }
    })
  }

  get traceparent(): string | null {
    return this.#traces.map((trace) => trace.traceparent).find((given) => given !== null) ?? null
  }

  event(event: RunEvent): void {
    for (const trace of this.#traces) trace.event(event)
  }

  constants(constants: RequestConstants): void {
    for (const trace of this.#traces) trace.constants(constants)
  }

  within<T>(scope: TraceScope, work: () => T): T {
    return this.#traces.reduceRight((inner, trace) => () => trace.within(scope, inner), work)()
  }
}

/** Flushes every tracing. Never rejects. */
export async function flushTracing(tracings: readonly Tracing[]): Promise<void> {
  const flush = async (tracing: Tracing): Promise<void> => {
    try {
      await tracing.flush?.()
    } catch (thrown) {
      reportOnce(tracing, thrown)
    }
  }
  await Promise.all(tracings.map(flush))
}

/** A trace that cannot fail. */
class SafeTrace {
  readonly #tracing: Tracing
  readonly #trace: RunTrace

  constructor(tracing: Tracing, trace: RunTrace) {
    this.#tracing = tracing
    this.#trace = trace
  }

  get traceparent(): string | null {
    let given: string | null = null
    this.#safely(() => (given = this.#trace.traceparent ?? null))
    return given
  }

  event(event: RunEvent): void {
    this.#safely(() => this.#trace.event(event))
  }

  constants(constants: RequestConstants): void {
    this.#safely(() => this.#trace.constants?.(constants))
  }

  within<T>(scope: TraceScope, work: () => T): T {
    if (this.#trace.within === undefined) return work()
    let done: { readonly value: T } | { readonly thrown: unknown } | undefined
    const once = (): T => {
      done = outcomeOf(work)
      return valueOf(done)
    }
    // Whatever the trace does with it: the work is done once, and its outcome is the one that counts.
    this.#safely(
      () => ignoreRejection(this.#trace.within?.(scope, once)),
      () => done !== undefined && 'thrown' in done,
    )
    return done === undefined ? work() : valueOf(done)
  }

  #safely(traced: () => unknown, isExpected: () => boolean = () => false): void {
    const report = (thrown: unknown): void => {
      if (!isExpected()) reportOnce(this.#tracing, thrown)
    }
    try {
      const later = traced()
      // Nobody awaits what a trace does later.
      if (later instanceof Promise) later.catch(report)
    } catch (thrown) {
      report(thrown)
    }
  }
}

/** The run awaits the work itself: what a trace makes of its promise is nobody's. */
function ignoreRejection(value: unknown): void {
  if (value instanceof Promise) value.catch(() => undefined)
}

type Outcome<T> = { readonly value: T } | { readonly thrown: unknown }

function outcomeOf<T>(work: () => T): Outcome<T> {
  try {
    return { value: work() }
  } catch (thrown) {
    return { thrown }
  }
}

function valueOf<T>(outcome: Outcome<T>): T {
  if ('value' in outcome) return outcome.value
  throw outcome.thrown
}

const reported = new WeakSet<Tracing>()

/** Tracing is no part of the run, so its log hears nothing of this. */
function reportOnce(tracing: Tracing, thrown: unknown): void {
  if (reported.has(tracing)) return
  reported.add(tracing)
  warn(`Tracing failed, and the run continues without it: ${messageOf(thrown)}`, 'TracingWarning')
}
