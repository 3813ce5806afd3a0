import type { LogStore } from '#core/log/log.js'
import type { RunEvent } from '#core/state/events.js'

/** Makes an event what readers may see of it. */
export type RedactEvent = (event: RunEvent) => RunEvent

/** A log whose runs are read as readers may see them. `redaction`: asked when somebody reads. */
export function redactedLog(log: LogStore, redaction: () => Promise<RedactEvent>): LogStore {
  async function* shown(events: AsyncIterable<RunEvent>): AsyncGenerator<RunEvent> {
    const redact = await redaction()
    for await (const event of events) yield redact(event)
  }
  const readers = new Set(['read', 'follow'])
  return new Proxy(log, {
    get(target, name): unknown {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...given: readonly unknown[]): unknown => {
        const answer: unknown = Reflect.apply(member, target, given)
        const { kind } = given[0] as { readonly kind?: unknown }
        return readers.has(String(name)) && kind === 'run' ? shown(answer as AsyncIterable<RunEvent>) : answer
      }
    },
  })
}

/** Batches of events as readers may see them. What is not stored has been redacted by its run. */
export async function* redactedBatches<Event extends RunEvent>(
  batches: AsyncIterable<readonly Event[]>,
  redact: RedactEvent,
): AsyncGenerator<readonly Event[]> {
  for await (const batch of batches) yield batch.map((event) => (event.durable ? (redact(event) as Event) : event))
}
