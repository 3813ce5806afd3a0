import { textOf, toolCallsOf } from '#contracts/entry.js'
import type { HarnessResult } from '#contracts/result.js'
import { deepFreeze } from '#util/json.js'
import type { JsonValue } from '#util/json.js'
import type { DurableEvent, StreamEvent, StreamExtras } from '../state/events.js'

/** Freezes an event. The value of a tool is left as it is: only readers get it, and it can be large. */
export function frozenEvent(event: DurableEvent): DurableEvent {
  if (event.kind !== 'tool_call_completed' || event.value === undefined) return deepFreeze(event)
  for (const [name, member] of Object.entries(event)) if (name !== 'value') deepFreeze(member)
  return Object.freeze(event)
}

/** The value of a tool is frozen when it is first read. */
function withFrozenValue(event: DurableEvent & { kind: 'tool_call_completed' }, value: JsonValue): StreamEvent {
  const copy = { ...event }
  Object.defineProperty(copy, 'value', { get: () => deepFreeze(value), enumerable: true })
  return Object.freeze(copy)
}

/** A durable event as a stream yields it. Its additional members are not enumerable, and so not in its JSON. */
export function streamed(event: DurableEvent, result: HarnessResult<unknown> | null): StreamEvent {
  if (event.kind === 'model_message')
    return Object.freeze(Object.assign(Object.create(REPLY) as object, event)) as unknown as StreamEvent
  if (event.kind === 'tool_call_completed' && event.value !== undefined) return withFrozenValue(event, event.value)
  if (event.kind !== 'run_completed') return event
  // Nobody listens to a run that is replayed.
  if (result === null) return event as StreamEvent
  return Object.freeze(
    Object.defineProperty({ ...event }, 'result', { value: result, enumerable: false }),
  ) as unknown as StreamEvent
}

type Reply = DurableEvent & { kind: 'model_message' }

/** The members of a reply that are computed when they are read. */
const REPLY = {
  get text(): string {
    return textOf((this as unknown as Reply).entry.parts)
  },
  get toolCalls(): StreamExtras['model_message']['toolCalls'] {
    return toolCallsOf((this as unknown as Reply).entry.parts).map(({ callId: id, name }) => ({ id, name }))
  },
}
