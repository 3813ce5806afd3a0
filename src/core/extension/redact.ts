import type { RunEvent, StreamEvent } from '../state/events.js'
import { isObject } from '#util/json.js'
import { failedMember } from './context.js'
import type { Named } from './context.js'

export type Redact = (event: StreamEvent) => StreamEvent

/**
 * An event as readers and traces get it. Extensions see all of its members, also those that are not in its JSON.
 * @throws HarnessError `hook_failed` if a redaction throws, or returns something that is not an event of that kind.
 */
export function redactedEvent(redactions: readonly Named<Redact>[], event: StreamEvent): StreamEvent {
  const names = Object.getOwnPropertyNames(event)
  const hidden = names.filter((name) => !Object.prototype.propertyIsEnumerable.call(event, name))
  let shown = { ...event, ...Object.fromEntries(hidden.map((name) => [name, event[name as keyof StreamEvent]])) }
  for (const redaction of redactions) shown = { ...redactedBy(redaction, shown) }
  for (const name of hidden) if (name in shown) Object.defineProperty(shown, name, { enumerable: false })
  return shown
}

/** Stored events as readers get them. */
export async function* redactedEvents(
  redactions: readonly Named<Redact>[],
  events: AsyncIterable<RunEvent>,
): AsyncGenerator<RunEvent, void, undefined> {
  for await (const event of events) yield redactedEvent(redactions, event as StreamEvent)
}

function redactedBy({ extension, member }: Named<Redact>, event: StreamEvent): StreamEvent {
  try {
    const shown: unknown = member(event)
    if (isObject(shown) && shown['kind'] === event.kind) return shown as unknown as StreamEvent
    throw new TypeError(`Expected an event of kind \`${event.kind}\`.`)
  } catch (cause) {
    throw failedMember(`The redaction of extension \`${extension}\``, cause)
  }
}
