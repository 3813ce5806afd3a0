import type { DurableEvent, EphemeralEvent, RunTrace, RunUsage, TracedRun, Tracing } from '../index.js'
import { NO_USAGE } from '../report.js'

/**
 * Traces a run from its log, long after it ran: its spans have the times that the log states. What was under way when
 * the process of a run ended is told as failed, with the error type `Interrupted`. Children have logs of their own.
 */
export async function traceLog(
  tracing: Tracing,
  events: Iterable<DurableEvent> | AsyncIterable<DurableEvent>,
): Promise<void> {
  await tracing.load?.()
  const seen: DurableEvent[] = []
  let trace: RunTrace | null = null
  let traceparent: string | null = null
  for await (const event of events) {
    trace ??= tracing.startRun(tracedRun(seen[0] ?? event, event, traceparent))
    traceparent ??= trace.traceparent ?? null
    trace.event(event)
    seen.push(event)
    if (event.kind === 'run_completed' || event.kind === 'run_failed') trace = null
  }
  const last = seen.at(-1)
  if (trace !== null && last !== undefined) trace.event(interrupted(last, seen))
  await tracing.flush?.()
}

/** `event` is where the run begins or goes on; `first` is the first one of all. */
function tracedRun(first: DurableEvent, event: DurableEvent, traceparent: string | null): TracedRun {
  const { runId, parentRunId, parentToolCallId, agentName } = first
  const { metadata, root } = first.kind === 'run_started' ? first : { metadata: {}, root: '' }
  const resumed = event.kind !== 'run_started' || event.begun !== 'fresh'
  return { runId, parentRunId, parentToolCallId, agentName, metadata, root, at: event.at, resumed, traceparent }
}

function interrupted(last: DurableEvent, events: readonly DurableEvent[]): EphemeralEvent & { kind: 'run_failed' } {
  const { runId, seq, at, parentRunId, parentToolCallId, agentName } = last
  return {
    ...{ kind: 'run_failed', durable: false, runId, seq, at, parentRunId, parentToolCallId, agentName },
    stopReason: 'error',
    code: 'error',
    errorType: 'Interrupted',
    message: 'The log ends before the run does.',
    usage: usageOf(events),
  }
}

function usageOf(events: readonly DurableEvent[]): RunUsage {
  const count = (kind: DurableEvent['kind']): number => events.filter((event) => event.kind === kind).length
  return { ...NO_USAGE, modelRequests: count('model_message'), toolCalls: count('tool_call_started') }
}
