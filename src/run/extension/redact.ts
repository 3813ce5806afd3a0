import { HarnessError, messageOf } from '../../contracts/errors.js'
import type { RunEvent, StreamEvent } from '../machine/events.js'
import { ignoreRejection } from '../../util/items.js'
import { isObject } from '../../util/json.js'
import type { Named, Redact } from './compose.js'

/**
 * An event as readers and traces get it. Extensions see all of its members, also those that are not in its JSON.
 * @throws HarnessError `hook_failed` if a redaction throws, or returns something that is not an event of that kind.
 */
export function redactedEvent(redactions: readonly Named<Redact>[], event: StreamEvent): StreamEvent {
  const names = Object.getOwnPropertyNames(event)
  const hidden = names.filter((name) => !Object.prototype.propertyIsEnumerable.call(event, name))
  let shown = { ...event, ...Object.fromEntries(hidden.map((name) => [name, event[name as keyof StreamEvent]])) }
  for (const { extension, member } of redactions) shown = { ...redactedBy(extension, member, shown) }
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

function redactedBy(extension: string, redact: Redact, event: StreamEvent): StreamEvent {
  let shown: unknown
  try {
    shown = redact(event)
  } catch (cause) {
    throw failed(extension, messageOf(cause), cause)
  }
  if (isObject(shown) && shown['kind'] === event.kind) return shown as unknown as StreamEvent
  ignoreRejection(shown)
  throw failed(extension, `Expected an event of kind \`${event.kind}\`.`)
}

function failed(extension: string, problem: string, cause?: unknown): HarnessError {
  return new HarnessError('hook_failed', `The redaction of extension \`${extension}\` failed: ${problem}`, { cause })
}
