import type { DurableEvent, RunEvent } from '#core/state/events.js'
import type { RunTrace, TracedRun, Tracing } from '#core/extension/run-tracer.js'
import type { RunUsage } from '#contracts/run-usage.js'
import { NO_USAGE } from '#contracts/run-usage.js'

/**
 * Traces runs from their events, long after they ran: spans have the times that the events state. `events` are those of a log
 * or a stream, including those of child runs. Spans that are open when the events end are
 * reported as failed, with the error type `Interrupted`.
 */
export async function traceLog(tracing: Tracing, events: Iterable<RunEvent> | AsyncIterable<RunEvent>): Promise<void> {
  await tracing.load?.()
  const runs = new Map<string, LoggedRun>()
  for await (const event of events) {
    const run = runs.get(event.runId) ?? new LoggedRun(tracing)
    runs.set(event.runId, run)
    run.event(event)
  }
  // Children end before their parents.
  for (const run of [...runs.values()].reverse()) run.interrupt()
  await tracing.flush?.()
}

class LoggedRun {
  readonly #tracing: Tracing
  #trace: RunTrace | null = null
  #traceparent: string | null = null
  /** Metadata and workspace are recorded once. */
  #first: DurableEvent | null = null
  #last: DurableEvent | null = null
  #usage = NO_USAGE

  constructor(tracing: Tracing) {
    this.#tracing = tracing
  }

  event(event: RunEvent): void {
    if (!event.durable) return
    this.#first ??= event
    this.#last = event
    this.#trace ??= this.#tracing.startRun(tracedRun(this.#first, event, this.#traceparent))
    this.#traceparent ??= this.#trace.traceparent ?? null
    this.#trace.event(event)
    this.#usage = usageWith(this.#usage, event)
    if (event.kind === 'run_completed' || event.kind === 'run_failed') this.#trace = null
  }

  interrupt(): void {
    if (this.#trace === null || this.#last === null) return
    const { runId, seq, at, parentRunId, parentToolCallId, agentName } = this.#last
    this.#trace.event({
      ...{ kind: 'run_failed', durable: false, runId, seq, at, parentRunId, parentToolCallId, agentName },
      stopReason: 'error',
      code: 'error',
      errorType: 'Interrupted',
      message: 'The events end before the run does.',
      usage: this.#usage,
    })
  }
}

/** `event` begins or continues the run; `first` is the first event of all. */
function tracedRun(first: DurableEvent, event: DurableEvent, traceparent: string | null): TracedRun {
  const { runId, parentRunId, parentToolCallId, agentName } = first
  const started = [first, event].find((each) => each.kind === 'run_started')
  const { metadata, root } = started ?? { metadata: {}, root: '' }
  const resumed = event.kind !== 'run_started' || event.begun !== 'fresh'
  return { runId, parentRunId, parentToolCallId, agentName, metadata, root, at: event.at, resumed, traceparent }
}

function usageWith(usage: RunUsage, { kind }: DurableEvent): RunUsage {
  if (kind === 'model_message') return { ...usage, modelRequests: usage.modelRequests + 1 }
  if (kind === 'tool_call_started') return { ...usage, toolCalls: usage.toolCalls + 1 }
  return usage
}
