import type { JsonValue } from '#util/json.js'
import { list, nullable, object, optional, record, string } from '#util/shape.js'
import type { Fields, Shape } from '#util/shape.js'
import type { BackgroundReport, BackgroundRun } from '#core/state/other-runs.js'
import type { RunState } from '#core/state/state.js'

/** Shapes of the values that runs in the background share with the rest of a state. */
interface Shared {
  readonly json: Shape<JsonValue>
  readonly source: Shape<BackgroundReport['source']>
  readonly waiting: Shape<BackgroundRun['waiting']>
  readonly answers: Shape<BackgroundRun['answers']>
  readonly childState: Shape<NonNullable<BackgroundRun['state']>>
}

/** The stored form of the runs in the background, as a field of the state. */
export function otherRunsShape({
  json,
  source,
  waiting,
  answers,
  childState,
}: Shared): Pick<Fields<RunState>, 'background'> {
  const run = object<BackgroundRun>({
    id: string,
    callId: string,
    toolName: string,
    key: string,
    childRunId: string,
    agent: string,
    task: string,
    arguments: string,
    askedBefore: optional(record(json)),
    waiting,
    answers,
    state: nullable(childState),
  })
  const report = object<BackgroundReport>({ callId: string, content: string, source })
  return { background: optional(object({ runs: list(run), reports: list(report) })) }
}
