import { afterEach } from 'vitest'
import { HarnessError } from 'thinharness'
import type { DurableEvent } from 'thinharness'
import { observeLaunches } from '#harness/launch-observer.js'
import type { ObservedLaunch } from '#harness/launch-observer.js'
import { replayRun } from '#run/replay/replay.js'
import { isReference } from '#run/machine/history.js'
import type { Conversation } from '#run/machine/history.js'
import type { StartHistory } from '#run/resume/read-log.js'
import { timeLimit, times } from './length.js'

/**
 * After each test, every run of it is replayed by its events, with no request and no tool call: it must emit the same
 * events and reach the same end.
 */
interface RecordedRun {
  readonly launch: ObservedLaunch
  readonly events: readonly DurableEvent[]
  /** The conversation that the run continued. */
  readonly history: Conversation
  readonly end: PromiseSettledResult<{ readonly text: string; readonly stopReason: string }>
}

/** More runs of one test are alike. */
const MOST = times(100, 500)

let recorded: RecordedRun[] = []

observeLaunches((launch) => {
  const events: DurableEvent[] = []
  let history: Conversation = { entries: [] }
  const stop = launch.listen((event) => {
    // Two runs may be launched under one id: the second never begins.
    if (!event.durable || !launch.context.hasBegun) return
    if (event.kind === 'run_started') history = conversationBefore(launch)
    events.push(event)
  })
  const record = (end: RecordedRun['end']): void => {
    stop()
    recorded.push({ launch, events, history, end })
  }
  launch.outcome.then(
    (value) => record({ status: 'fulfilled', value }),
    (reason: unknown) => record({ status: 'rejected', reason }),
  )
})

function conversationBefore({ context }: ObservedLaunch): Conversation {
  const { transcript, firstEntry, view } = context.state
  return structuredClone({ entries: transcript.slice(0, firstEntry), ...(view && { view }) })
}

afterEach(async () => {
  const runs = recorded
  recorded = []
  for (const run of runs.slice(0, MOST)) await replay(run)
}, timeLimit(120_000))

async function replay({ launch, events, history: before, end }: RecordedRun): Promise<void> {
  const { runId, options } = launch.run
  const [first] = events
  const last = events.at(-1)
  const isWhole = first?.kind === 'run_started' && (first.seq === 1 || first.state !== undefined)
  // A run that continues an earlier stretch, was not stored, or had ended before has no whole recording here.
  // A reader of redacted events does not have the recording either.
  if ((options.metadata as { readonly redacted?: boolean } | undefined)?.redacted === true) return
  if (!isWhole || (last?.kind !== 'run_completed' && last?.kind !== 'run_failed')) return
  const json = JSON.parse(JSON.stringify(events)) as DurableEvent[]
  const { instructions, tools, mcpServers, root, use } = options
  const replayOptions = {
    ...(instructions !== undefined && { instructions }),
    ...(tools !== undefined && { tools }),
    ...(mcpServers !== undefined && { mcpServers }),
    ...(root !== undefined && { root }),
    ...(use !== undefined && { use }),
  }
  const resolve = ({ history, view }: StartHistory): Promise<Conversation> =>
    Promise.resolve(isReference(history) ? before : { entries: history, ...(view && { view }) })
  const [again] = await Promise.allSettled([
    replayRun(json, (stretch) => launch.replay(stretch, replayOptions), { resolve }),
  ])
  const [now, then] = [outcomeIn(again), outcomeIn(end)]
  if (now === then) return
  throw new Error(`The replay of run \`${runId}\` ended in ${now} instead of ${then}.`)
}

function outcomeIn(end: RecordedRun['end']): string {
  if (end.status === 'fulfilled') return JSON.stringify([end.value.stopReason, end.value.text])
  const error: unknown = end.reason
  return error instanceof HarnessError ? JSON.stringify([error.code, error.message]) : String(error)
}
