import { project } from '../projection.js'
import type { AnyRunEvent } from '../projection.js'
import { agUiProjection } from './ag-ui-projection.js'
import type { AgUiEvent } from './event.js'
import type { AgUiOptions } from './options.js'

/**
 * The events of a run as AG-UI events: one stretch, up to the run's last pause or end. A source that fails without an end of its
 * run ends in `RUN_ERROR` with the code `interrupted`.
 *
 * @example
 * for await (const event of toAgUi(harness.stream(prompt), { threadId, runId })) response.write(encodeAgUi(event))
 */
export function toAgUi(
  events: AsyncIterable<AnyRunEvent> | Iterable<AnyRunEvent>,
  options: AgUiOptions = {},
): ReadableStream<AgUiEvent> {
  const items = project(untilBroken(events), agUiProjection(options))
  return new ReadableStream<AgUiEvent>({
    async pull(controller) {
      const next = await items.next()
      if (next.done === true) controller.close()
      else controller.enqueue(next.value)
    },
    async cancel() {
      await items.return()
    },
  })
}

/** The events up to the end, or up to an error: the projection says how the run ended. */
export async function* untilBroken<Event>(events: AsyncIterable<Event> | Iterable<Event>): AsyncGenerator<Event> {
  try {
    yield* events
  } catch {
    // Clients do not notice that an end is missing: `end` of the projection writes one.
  }
}
