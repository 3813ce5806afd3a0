import { isObject } from '../../util/json.js'
import type { JsonValue } from '../../util/json.js'
import { list, nullable, object, optional, record, string } from '../../util/shape.js'
import type { Fields, Shape } from '../../util/shape.js'
import type { Background, BackgroundReport, BackgroundRun } from './other-runs.js'
import type { RunState } from './state.js'

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
  const current = object<BackgroundRun>({
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
  /** States of an earlier version have a field `answer`, which is not used any more. */
  const run: Shape<BackgroundRun> = {
    expected: current.expected,
    read: (value) => {
      const { answer: _, ...rest } = isObject(value) ? value : {}
      return current.read(isObject(value) ? rest : value)
    },
  }
  const report = object<BackgroundReport>({ callId: string, content: string, source })
  return { background: optional(object<Background>({ runs: list(run), reports: list(report) })) }
}
