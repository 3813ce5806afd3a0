import { fileLog, Harness } from 'thinharness'
import { modelOf } from './choose-model.js'
import type { ModelChoice } from './choose-model.js'
import { reader } from './reader.js'
import { Screen } from './screen.js'

/** What one process does of a run, as plain data. */
export interface Task {
  readonly model: ModelChoice
  readonly workspace: string
  /** Folder of the logs. */
  readonly runs: string
  readonly runId: string
  /** Null: the run is there, and its process was killed. */
  readonly question: string | null
  /** The process kills itself in the middle of a call, after some work that could be lost. */
  readonly dies: boolean
}

/** Prices of the scripted model, made up: USD per million tokens. */
const PRICES = {
  models: { scripted: { inputPerMillion: 3, outputPerMillion: 15, cacheReadPerMillion: 0.3 } },
}

/** Begins or recovers a run, and shows it. */
export async function answer({ model, workspace, runs, runId, question, dies }: Task): Promise<void> {
  await using harness = new Harness({
    model: modelOf(model),
    root: workspace,
    builtinTools: ['read', 'write', 'edit', 'search', 'list', 'glob', 'jsonl_search'],
    subagents: [reader],
    log: fileLog(runs),
    limits: { modelRequests: 24, timeMs: 600_000 },
    prices: PRICES,
    stall: true,
  })
  const screen = new Screen(process.stdout)
  const stream =
    question === null
      ? harness.streamRecover(runId, { deltas: true })
      : harness.stream(question, { runId, deltas: true })
  let replies = 0
  for await (const event of stream) {
    screen.show(event)
    if (event.parentRunId !== null) continue
    if (event.kind === 'model_message') replies += 1
    if (dies && replies === 2 && event.kind === 'tool_call_started') process.kill(process.pid, 'SIGKILL')
  }
  await stream.result
}
