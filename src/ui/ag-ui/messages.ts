import { runsIn } from '../projection.js'
import type { AnyRunEvent } from '../projection.js'
import { agUiProjection } from './ag-ui-projection.js'
import type { AgUiMessage } from './message.js'
import type { AgUiOptions } from './options.js'

export type AgUiMessagesOptions = Omit<AgUiOptions, 'after' | 'deltas' | 'held' | 'runId'>

/**
 * The messages of a thread, as a client of AG-UI has them after reading all of its streams. `events`: those of one run, or of
 * several in order, with those of their child runs.
 *
 * @example
 * const messages = toAgUiMessages(await Array.fromAsync(log.read({ kind: 'run', id: runId })))
 */
export function toAgUiMessages(
  events: Iterable<AnyRunEvent>,
  options: AgUiMessagesOptions = {},
): readonly AgUiMessage[] {
  let history = options.history ?? []
  for (const run of runsIn(events)) {
    const projection = agUiProjection({ ...options, history })
    for (const event of run) projection.next(event)
    projection.end()
    history = projection.messages
  }
  return history
}
