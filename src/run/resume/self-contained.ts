import type { RunLog } from '#core/log/log.js'
import type { DurableEvent } from '#core/state/events.js'
import { isReference } from '#core/state/history.js'
import { ChildDocuments } from './child-documents.js'
import { resolveHistory } from './read-log.js'

/** The events of a run that stand alone: with the conversation before it and the states of its child runs in them. */
export async function* selfContained(
  log: RunLog,
  events: AsyncIterable<DurableEvent> | Iterable<DurableEvent>,
): AsyncGenerator<DurableEvent> {
  const documents = new ChildDocuments(log)
  for await (const event of events) {
    if (event.kind === 'run_started' && isReference(event.history)) {
      const { entries: history, ...view } = await resolveHistory(log, event)
      yield { ...event, history, ...view }
    } else if (event.kind === 'approval_requested' && event.children !== undefined) {
      await documents.loadAll(event.children)
      yield { ...event, children: event.children.map(documents.of) }
    } else yield event
  }
}
