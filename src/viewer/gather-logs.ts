import { HarnessError, messageOf } from '#contracts/errors.js'
import { asLogStore, parseEvent } from '#core/log/log.js'
import type { LogEvent, LogStore, RunLog } from '#core/log/log.js'
import { runRef } from '#core/log/ref.js'
import type { DurableEvent, RunEvent } from '#core/state/events.js'
import { isObject } from '#util/json.js'

/** An event of a log: those of a live stream, such as deltas, may stand among them. */
export type ViewedEvent = RunEvent

/** The event as the page may have it: changed, or null for one that is left out. */
export type RedactViewed = (event: ViewedEvent) => ViewedEvent | null

/** A log; the events of runs; or the text of an exported log, one event a line. */
export type ViewerSource = RunLog | LogStore | Iterable<ViewedEvent> | AsyncIterable<ViewedEvent> | string

export interface ViewerOptions {
  /** The run to show, with its child runs. Default: of a log its newest runs, of events those that are there. */
  readonly runId?: string | undefined
  /** The conversation to show: its runs, one after the other. */
  readonly threadId?: string | undefined
  /** How many of the newest runs a page of a whole log has. Default 50. */
  readonly limit?: number | undefined
  /** A second run, beside which `runId` is shown. */
  readonly compare?: string | undefined
  /** Default: the beginning of the prompt. */
  readonly title?: string | undefined
  /** Removes secrets before the page is written: what is in the log is in the page. Default: nothing is changed. */
  readonly redact?: RedactViewed | undefined
  /** The template of the page, for a program that is bundled without the files of this package. Default: read from the package. */
  readonly page?: string | undefined
}

/** The log of a run as it goes into a page. */
export interface GatheredLog {
  readonly runId: string
  readonly parentRunId: string | null
  readonly lines: readonly string[]
  /** The last line ends in the middle: no LF follows it. */
  readonly isCut: boolean
  /** As a store says; null: it has none. */
  readonly status: string | null
  /** Why the log ends here, if it could not be read to its end. */
  readonly problem: string | null
}

const DEFAULT_LIMIT = 50

/**
 * The logs that a page shows: runs at the top in their order, each followed by its child runs. `owner`: of a whole log the runs of
 * this `metadata.resourceId` alone. Throws `run_not_found`.
 */
export async function gatherLogs(
  source: ViewerSource,
  options: ViewerOptions,
  owner?: string,
): Promise<readonly GatheredLog[]> {
  const logs = isLog(source) ? await ofStore(source, options, owner) : await ofEvents(source, options)
  return inOrder(logs)
}

function isLog(source: ViewerSource): source is RunLog {
  return typeof source === 'object' && 'read' in source && typeof source.read === 'function'
}

/** The runs at the top that the options name; null if they name none. */
export async function chosenRuns(log: RunLog, options: ViewerOptions): Promise<readonly string[] | null> {
  const { runId, threadId, compare } = options
  if (runId === undefined && threadId === undefined) return null
  const named = threadId === undefined ? [runId] : await runsOfThread(log, threadId)
  return [...new Set([...named, compare])].filter((id) => id !== undefined)
}

/** The runs of a log, as the options name them. */
async function ofStore(log: RunLog, options: ViewerOptions, owner?: string): Promise<readonly GatheredLog[]> {
  const { compare, redact, limit = DEFAULT_LIMIT } = options
  const chosen = (await chosenRuns(log, options)) ?? (await newest(asLogStore(log), limit, owner))
  const tops = compare === undefined ? chosen : [...new Set([...chosen, compare])]
  const included = new Set(tops)
  const gathered: GatheredLog[] = []
  for (const id of tops) gathered.push(...(await withChildren(log, id, { included, redact })))
  return gathered
}

async function newest(log: Partial<LogStore>, limit: number, resourceId?: string): Promise<readonly string[]> {
  if (log.list === undefined)
    throw new HarnessError('invalid_options', 'Expected `runId` with a log that cannot list its runs.')
  const ids: string[] = []
  if (limit > 0)
    for await (const { runId } of log.list({ parentRunId: null, resourceId })) if (ids.push(runId) >= limit) break
  return ids
}

/** The runs of a conversation, oldest first, without those that others have replaced. */
async function runsOfThread(log: RunLog, threadId: string): Promise<readonly string[]> {
  const ids = new Set<string>()
  let isKnown = false
  for await (const event of asLogStore(log).read?.<LogEvent>({ kind: 'thread', id: threadId }) ?? []) {
    isKnown = true
    if (event.kind !== 'run_begun') continue
    const { runId, replaces } = event as LogEvent & {
      readonly runId: string
      readonly replaces?: { readonly runIds: readonly string[] }
    }
    for (const id of replaces?.runIds ?? []) ids.delete(id)
    ids.add(runId)
  }
  if (isKnown) return [...ids]
  throw new HarnessError('run_not_found', `The log has no conversation \`${threadId}\`.`)
}

interface Gathering {
  /** Runs of the page: a history that is one of them is not repeated. */
  readonly included: ReadonlySet<string>
  readonly redact: RedactViewed | undefined
}

async function withChildren(log: RunLog, runId: string, gathering: Gathering): Promise<readonly GatheredLog[]> {
  const store = asLogStore(log)
  const summary = (await store.inspect?.(runRef(runId))) ?? null
  const own = await logOf(log, runId, gathering)
  if (own.lines.length === 0 && own.problem === null && summary === null)
    throw new HarnessError('run_not_found', `The log has no run \`${runId}\`.`)
  const children: string[] = []
  // Newest first.
  for await (const child of store.list?.({ parentRunId: runId }) ?? []) children.unshift(child.runId)
  const below: GatheredLog[] = []
  for (const id of children) below.push(...(await withChildren(log, id, gathering)))
  return [
    { ...own, status: summary?.status ?? null, parentRunId: own.parentRunId ?? summary?.parent?.runId ?? null },
    ...below,
  ]
}

/** As far as the log can be read: a broken line does not hide those before it. */
async function logOf(log: RunLog, runId: string, { included, redact }: Gathering): Promise<GatheredLog> {
  const events: ViewedEvent[] = []
  let problem: string | null = null
  try {
    for await (const event of await eventsOfRun(log, runId, included)) events.push(event)
  } catch (error) {
    problem = messageOf(error)
    events.length = 0
    try {
      for await (const event of log.read(runRef(runId))) events.push(event)
    } catch {
      // What was read before is shown.
    }
  }
  const lines = events.flatMap((event) => lineOf(event, redact) ?? [])
  return { runId, parentRunId: events[0]?.parentRunId ?? null, lines, problem, isCut: false, status: null }
}

/** The events that stand alone; those that refer to a run of the page as they are. */
async function eventsOfRun(
  log: RunLog,
  runId: string,
  included: ReadonlySet<string>,
): Promise<AsyncIterable<DurableEvent>> {
  const store = asLogStore(log)
  const refers = included.size > 1 && (await refersTo(log, runId, included))
  return store.export === undefined || refers ? log.read(runRef(runId)) : store.export(runId)
}

async function refersTo(log: RunLog, runId: string, included: ReadonlySet<string>): Promise<boolean> {
  for await (const event of log.read(runRef(runId))) {
    if (event.kind === 'run_queued') continue
    return event.kind === 'run_started' && 'runId' in event.history && included.has(event.history.runId)
  }
  return false
}

function lineOf(event: ViewedEvent, redact: RedactViewed | undefined): string | null {
  const shown = redact === undefined ? event : redact(event)
  return shown === null ? null : JSON.stringify(shown)
}

/** The runs whose events are given, each with its own. */
async function ofEvents(
  source: Exclude<ViewerSource, RunLog>,
  { runId, compare, redact }: ViewerOptions,
): Promise<readonly GatheredLog[]> {
  const logs = new Map<string, GatheredLog & { readonly lines: string[]; isCut: boolean }>()
  let last: string | null = null
  for await (const { event, line } of typeof source === 'string' ? linesOf(source) : eventLines(source)) {
    // A line that is broken belongs to the run of the one before it; it cannot be redacted.
    const id: string | null = event === null ? last : event.runId
    const text: string | null =
      event === null ? (redact === undefined ? line : null) : redact === undefined ? line : lineOf(event, redact)
    last = id
    if (id === null || text === null) continue
    const log = logs.get(id) ?? {
      runId: id,
      parentRunId: event?.parentRunId ?? null,
      lines: [],
      isCut: false,
      status: null,
      problem: null,
    }
    log.lines.push(text)
    log.isCut = event === null && typeof source === 'string' && source.endsWith(text)
    logs.set(id, log)
  }
  const found = [...logs.values()]
  if (found.length === 0) throw new HarnessError('run_not_found', 'There are no events of a run.')
  for (const id of [runId, compare])
    if (id !== undefined && !logs.has(id))
      throw new HarnessError('run_not_found', `There are no events of run \`${id}\`.`)
  if (runId === undefined) return found
  const tops = new Set([runId, compare])
  return found.filter((log) => tops.has(topOf(log, logs, tops)))
}

/** The run at the top above a run, or the first of `tops` on the way there. */
function topOf(
  log: GatheredLog,
  logs: ReadonlyMap<string, GatheredLog>,
  tops: ReadonlySet<string | undefined>,
): string {
  let top = log
  while (!tops.has(top.runId)) {
    const parent = top.parentRunId === null ? undefined : logs.get(top.parentRunId)
    if (parent === undefined) break
    top = parent
  }
  return top.runId
}

interface EventLine {
  /** Null: the line is none. */
  readonly event: ViewedEvent | null
  readonly line: string
}

function* linesOf(text: string): Generator<EventLine> {
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    const event = parseEvent(line)
    if (event !== undefined && 'runId' in event) yield { event: event as ViewedEvent, line }
    else if (!isResult(line)) yield { event: null, line }
  }
}

/** The last line that `run --json` writes. */
function isResult(line: string): boolean {
  return line.startsWith('{"kind":"result"')
}

async function* eventLines(events: Iterable<ViewedEvent> | AsyncIterable<ViewedEvent>): AsyncGenerator<EventLine> {
  for await (const event of events) {
    if (!isObject(event) || typeof event.runId !== 'string' || typeof event.kind !== 'string')
      throw new HarnessError('invalid_options', `Expected events with \`kind\` and \`runId\`, got ${typeof event}.`)
    yield { event, line: JSON.stringify(event) }
  }
}

/** Each run before its child runs. */
function inOrder(logs: readonly GatheredLog[]): readonly GatheredLog[] {
  const ids = new Set(logs.map(({ runId }) => runId))
  const below = (parent: string | null): readonly GatheredLog[] =>
    logs
      .filter(({ parentRunId }) => (parentRunId !== null && ids.has(parentRunId) ? parentRunId : null) === parent)
      .flatMap((log) => [log, ...below(log.runId)])
  return below(null)
}
