import type { LogStore, RunLog } from '#core/log/log.js'
import type { AnyRunEvent } from '../projection.js'
import { ChildRuns, OpenCalls } from './child-runs.js'

/** The stored events of a run with those of its child runs, in the order in which a reader who follows the run gets them. */
export async function* storedEvents(
  log: RunLog | LogStore,
  runId: string,
): AsyncGenerator<AnyRunEvent, void, undefined> {
  const children = new ChildRuns(log)
  const open = new OpenCalls()
  for await (const event of log.read({ kind: 'run', id: runId })) {
    yield* children.before(event)
    open.push(event)
    yield event
  }
  yield* children.ofCalls(runId, open)
}
