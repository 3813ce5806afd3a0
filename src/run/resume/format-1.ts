import { isObject } from '../../util/json.js'
import { FORMAT_VERSION } from '../machine/events.js'
import type { DurableEvent, DurablePayloads } from '../machine/events.js'

/**
 * Turns the events of one log, in their order, into those of the current format: a log may begin in format 1 and continue in
 * this one. Changes nothing that it is given.
 */
export function currentFormat(): (stored: DurableEvent) => DurableEvent {
  let isOld = false
  return (stored) => {
    if (stored.kind === 'run_started') isOld = (stored as { version?: number }).version === undefined
    return isOld ? fromFormat1(stored) : stored
  }
}

/** The events of one log in the current format. */
export async function* inCurrentFormat(
  events: AsyncIterable<DurableEvent> | Iterable<DurableEvent>,
): AsyncGenerator<DurableEvent> {
  const current = currentFormat()
  for await (const event of events) yield current(event)
}

function fromFormat1(event: DurableEvent): DurableEvent {
  if (event.kind === 'run_started') return { ...event, version: FORMAT_VERSION }
  if (event.kind === 'model_message') {
    // Both are in the entry.
    const { text: _, toolCalls: __, ...rest } = event as typeof event & { text?: unknown; toolCalls?: unknown }
    return rest
  }
  if (event.kind !== 'run_completed') return event
  const { result, ...rest } = event as typeof event & { readonly result: Format1Result }
  const { stopReason, usage, pending } = result
  return { ...rest, stopReason, usage, pending: pending.map(({ callId }) => callId) }
}

type Format1Result = Pick<DurablePayloads['run_completed'], 'stopReason' | 'usage'> & {
  readonly pending: readonly { readonly callId: string }[]
}

/** A stored state of format 1 as one of the current format; any other document as it is. */
export function stateInCurrentFormat(document: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (document['version'] !== 1 || !isObject(document)) return document
  return { ...document, version: FORMAT_VERSION }
}
