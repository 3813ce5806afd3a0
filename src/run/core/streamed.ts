import { textOf, toolCallsOf } from '../../contracts/entry.js'
import type { HarnessResult } from '../../contracts/result.js'
import type { DurableEvent, StreamEvent, StreamExtras } from '../machine/events.js'

/** A durable event as a stream yields it. What it has more than the stored one is not enumerable: not in its JSON. */
export function streamed(event: DurableEvent, result: HarnessResult<unknown> | null): StreamEvent {
  if (event.kind === 'model_message') {
    const { parts } = event.entry
    const toolCalls = toolCallsOf(parts).map(({ callId: id, name }) => ({ id, name }))
    return withExtras<'model_message'>(event, { text: textOf(parts), toolCalls })
  }
  if (event.kind !== 'run_completed') return event
  // Nobody listens to a run that is replayed.
  return result === null ? (event as StreamEvent) : withExtras<'run_completed'>(event, { result })
}

function withExtras<Kind extends keyof StreamExtras>(
  event: DurableEvent & { kind: Kind },
  extras: StreamExtras[Kind],
): StreamEvent {
  const copy = { ...event }
  for (const [name, value] of Object.entries(extras)) Object.defineProperty(copy, name, { value, enumerable: false })
  return copy as unknown as StreamEvent
}
