import { afterEach } from 'vitest'
import { HarnessError } from 'thinharness'
import type { DurableEvent, HarnessResult, StreamEvent, ToolSpec } from 'thinharness'
import { Launcher } from '#harness/runs.js'
import type { OpenRun } from '#harness/open-runs.js'
import type { Launch } from '#harness/runs.js'
import { EventQueue } from '#run/stream/queue.js'
import { replayRun } from '#run/replay/replay.js'
import { isReference } from '#run/machine/history.js'
import type { Conversation } from '#run/machine/history.js'
import type { StartHistory } from '#run/resume/read-log.js'

/**
 * Every run of a test is run again behind it, by its events, with no request and no tool: it must tell the same events
 * and come to the same end.
 */
interface Played {
  readonly launcher: Launcher<unknown>
  readonly run: OpenRun
  readonly tools: readonly ToolSpec[]
  readonly events: readonly DurableEvent[]
  readonly before: Conversation | undefined
  readonly end: PromiseSettledResult<{ readonly text: string; readonly stopReason: string }>
}

const toldTo = new WeakMap<EventQueue, DurableEvent[]>()
let played: Played[] = []

const push = (queue: EventQueue, event: StreamEvent): Promise<void> | undefined => pushing.call(queue, event)
const pushing: (this: EventQueue, event: StreamEvent) => Promise<void> | undefined = Reflect.get(
  EventQueue.prototype,
  'push',
)
EventQueue.prototype.push = function (event) {
  const events = toldTo.get(this) ?? []
  toldTo.set(this, events)
  if (event.durable) events.push(event)
  return push(this, event)
}

type LaunchRun = typeof Launcher.prototype.launch
/** The conversation that a run continued, as it was found when it began. */
const conversations = new WeakMap<Launch, Conversation>()

/** The same launch; what it finds of a conversation is remembered. */
function remembering(launch: Launch): Launch {
  const { opening } = launch
  if (opening.kind !== 'fresh') return launch
  const history = async (): ReturnType<typeof opening.history> => {
    const found = await opening.history()
    conversations.set(watched, found.conversation)
    return found
  }
  const watched: Launch = { ...launch, opening: { ...opening, history } }
  return watched
}

const launchRun: LaunchRun = Reflect.get(Launcher.prototype, 'launch')
Launcher.prototype.launch = async function (this: Launcher<unknown>, run, given, tools) {
  const launch = remembering(given)
  const outcome: Promise<HarnessResult<unknown>> = launchRun.call(this, run, launch, tools)
  const keep = (end: Played['end']): void => {
    const events = (toldTo.get(run.queue) ?? []).filter((event) => event.runId === run.runId)
    played.push({ launcher: this, run, tools, events, end, before: conversations.get(launch) })
  }
  outcome.then(
    (value) => keep({ status: 'fulfilled', value }),
    (reason: unknown) => keep({ status: 'rejected', reason }),
  )
  return outcome
}

afterEach(async () => {
  const runs = played
  played = []
  for (const run of runs) await replay(run)
})

async function replay({ launcher, run, tools, events, end, before = { entries: [] } }: Played): Promise<void> {
  const [first] = events
  const last = events.at(-1)
  const isWhole = first?.kind === 'run_started' && (first.seq === 1 || first.state !== undefined)
  // What goes on further down in a log, what was not kept, and what ends as it was stored has no whole recording here.
  // A reader of redacted events does not have the recording either.
  if (run.options.metadata?.['redacted'] === true) return
  if (!isWhole || (last?.kind !== 'run_completed' && last?.kind !== 'run_failed')) return
  const json = JSON.parse(JSON.stringify(events)) as DurableEvent[]
  const { instructions, tools: own, use } = run.options
  const options = {
    ...(instructions !== undefined && { instructions }),
    ...(own !== undefined && { tools: own }),
    ...(use !== undefined && { use }),
  }
  const resolve = ({ history, view }: StartHistory): Promise<Conversation> =>
    Promise.resolve(isReference(history) ? before : { entries: history, ...(view && { view }) })
  const [again] = await Promise.allSettled([
    replayRun(json, (stretch) => launcher.replay(stretch, options, tools), resolve),
  ])
  const [now, then] = [outcomeIn(again), outcomeIn(end)]
  if (now === then) return
  throw new Error(`Run \`${run.runId}\` was run again by its events: expected ${then}, got ${now}.`)
}

function outcomeIn(end: Played['end']): string {
  if (end.status === 'fulfilled') return JSON.stringify([end.value.stopReason, end.value.text])
  const error: unknown = end.reason
  return error instanceof HarnessError ? JSON.stringify([error.code, error.message]) : String(error)
}
