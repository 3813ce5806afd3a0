import { textOf, toolCallsOf } from '../../contracts/entry.js'
import type { HarnessResult } from '../../contracts/result.js'
import { deepFreeze } from '../../util/freeze.js'
import type { JsonValue } from '../../util/json.js'
import type { DurableEvent, StreamEvent, StreamExtras } from '../machine/events.js'

/** An event that its readers cannot change, nor what the model reads of it. A tool's value is for readers alone, and can be large. */
export function frozenEvent(event: DurableEvent): DurableEvent {
  if (event.kind !== 'tool_call_completed') return deepFreeze(event)
  const { value: _, ...rest } = event
  deepFreeze(rest)
  return Object.freeze(event)
}

/** The value of a tool is frozen when it is first read. */
function withFrozenValue(event: DurableEvent & { kind: 'tool_call_completed' }, value: JsonValue): StreamEvent {
  const copy = { ...event }
  Object.defineProperty(copy, 'value', { get: () => deepFreeze(value), enumerable: true })
  return Object.freeze(copy)
}

/** A durable event as a stream yields it. What it has more than the stored one is not enumerable: not in its JSON. */
export function streamed(event: DurableEvent, result: HarnessResult<unknown> | null): StreamEvent {
  if (event.kind === 'model_message') {
    const { parts } = event.entry
    const toolCalls = toolCallsOf(parts).map(({ callId: id, name }) => ({ id, name }))
    return withExtras<'model_message'>(event, { text: textOf(parts), toolCalls })
  }
  if (event.kind === 'tool_call_completed' && event.value !== undefined) return withFrozenValue(event, event.value)
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
  return Object.freeze(copy) as unknown as StreamEvent
}
