import { afterEach } from 'vitest'
import { HarnessError } from 'thinharness'
import type { DurableEvent } from 'thinharness'
import { OpenRuns } from '#harness/open-runs.js'
import type { OpenRun } from '#harness/open-runs.js'
import type { RunContext } from '#core/loop/run-context.js'
import type { RunLauncher } from '#harness/launch/launcher.js'
import { replayRun } from '#run/replay/replay.js'
import { isReference } from '#core/state/history.js'
import type { Conversation } from '#core/state/history.js'
import type { StartHistory } from '#run/resume/read-log.js'
import type { ReplayedStretch, Stretch } from '#run/replay/replay.js'
import { timeLimit, times } from './length.js'

/**
 * After each test, every run of it is replayed by its events, with no request and no tool call: it must emit the same
 * events and reach the same end.
 */
interface RecordedRun {
  readonly run: OpenRun
  readonly events: DurableEvent[]
  /** The conversation that the run continued. */
  history: Conversation
  end: PromiseSettledResult<{ readonly text: string; readonly stopReason: string }> | null
  /** Executes a stretch again, with the tools that the harness had at the launch. */
  readonly again: (stretch: Stretch, options: Parameters<RunLauncher<unknown>['replay']>[1]) => ReplayedStretch<unknown>
}

/** More runs of one test are alike. */
const MOST = times(100, 500)

/** Kept by the process: test files that share it run this file again, and methods must be surrounded once. */
interface Watch {
  recorded: RecordedRun[]
  /** The runs that have been launched, by the queue of their events. */
  readonly byQueue: WeakMap<object, RecordedRun>
  isWatched: boolean
}

const KEY = Symbol.for('thinharness replayed runs')
const kept = globalThis as { [KEY]?: Watch }
const known = kept[KEY]
const watch: Watch = known ?? { recorded: [], byQueue: new WeakMap(), isWatched: false }
kept[KEY] = watch

/** Records the events of a run at the top as its readers get them. */
function record(run: OpenRun, again: RecordedRun['again']): RecordedRun {
  const entry: RecordedRun = { run, events: [], history: { entries: [] }, end: null, again }
  const { queue, runId } = run
  watch.byQueue.set(queue, entry)
  const push = queue.push.bind(queue)
  queue.push = (event) => {
    if (event.durable && event.runId === runId && entry.end === null) entry.events.push(event)
    return push(event)
  }
  return entry
}

/** The runs of the harness are loaded by its first run: in the test, with the mocks that it has. */
async function watchLaunches(): Promise<void> {
  watch.isWatched = true
  const [launching, contexts] = await Promise.all([
    import('#harness/launch/launcher.js'),
    import('#core/loop/run-context.js'),
  ])
  surround(
    launching.RunLauncher.prototype,
    'launch',
    (launch) =>
      function (this: RunLauncher<unknown>, run, opening, tools) {
        const entry = record(run, (stretch, options) => this.replay(stretch, options, tools))
        const outcome = launch.call(this, run, opening, tools)
        const end = (settled: RecordedRun['end']): void => {
          entry.end = settled
          watch.recorded.push(entry)
        }
        outcome.then(
          (value) => end({ status: 'fulfilled', value }),
          (reason: unknown) => end({ status: 'rejected', reason }),
        )
        return outcome
      },
  )
  surround(
    contexts.RunContext.prototype,
    'inherit',
    (inherit) =>
      function (this: RunContext, history) {
        const entry = this.parent === null ? watch.byQueue.get(this.queue) : undefined
        if (entry !== undefined) entry.history = structuredClone(history)
        inherit.call(this, history)
      },
  )
}

/** Replaces a method of a class. */
function surround<Class, Name extends keyof Class>(
  prototype: Class,
  name: Name,
  replaced: (original: Class[Name]) => Class[Name],
): void {
  prototype[name] = replaced(prototype[name])
}

if (known === undefined)
  surround(
    OpenRuns.prototype,
    'open',
    (open) =>
      function (this: OpenRuns, options, opened, begin) {
        return open.call(this, options, opened, async (run) => {
          if (!watch.isWatched) await watchLaunches()
          return begin(run) as never
        }) as never
      },
  )

afterEach(async () => {
  const runs = watch.recorded
  watch.recorded = []
  for (const run of runs.slice(0, MOST)) await replay(run)
}, timeLimit(120_000))

async function replay({ run, events, history: before, end, again }: RecordedRun): Promise<void> {
  const { runId, options } = run
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
  const [replayed] = await Promise.allSettled([
    replayRun(json, (stretch) => again(stretch, replayOptions), { resolve }),
  ])
  const [now, then] = [outcomeIn(replayed), outcomeIn(end)]
  if (now === then) return
  throw new Error(`The replay of run \`${runId}\` ended in ${now} instead of ${then}.`)
}

function outcomeIn(end: PromiseSettledResult<{ readonly text: string; readonly stopReason: string }> | null): string {
  if (end === null) return 'nothing'
  if (end.status === 'fulfilled') return JSON.stringify([end.value.stopReason, end.value.text])
  const error: unknown = end.reason
  return error instanceof HarnessError ? JSON.stringify([error.code, error.message]) : String(error)
}
