import { isDamage, SessionError, tellProcess } from '../errors.js'
import type { ChatCallAnswer } from '../thread/reduce-chat.js'
import type { PendingItem } from '#contracts/result.js'
import type { LogSummaries } from '#core/log/run-summary.js'
import type { LogStore } from '#core/log/log.js'

export interface InboxOptions {
  /**
   * The items that have been answered, with who answered and when, instead of those that wait. Reads the logs of the runs, newest
   * first: set `limit`. Default false.
   */
  readonly answered?: boolean | undefined
  /** At most so many. Default: all. */
  readonly limit?: number | undefined
  /** Only items that come after this one of the list, or after its cursor. */
  readonly before?: Pick<InboxItem, 'cursor'> | string | undefined
}

/** Something that waits, or waited, for a person. */
export interface InboxItem {
  readonly threadId: string
  readonly title: string
  /** The start of the first message of the thread. */
  readonly firstMessage: string
  readonly resourceId: string | null
  readonly runId: string
  readonly item: PendingItem
  /** Since when it waits: ISO 8601 in UTC. */
  readonly askedAt: string
  /** Null while it waits. */
  readonly answered: ChatCallAnswer | null
  /** Its place in the list. */
  readonly cursor: string
}

/** An item of a run's log. */
interface AskedItem {
  readonly item: PendingItem
  readonly askedAt: string
  readonly answered: ChatCallAnswer | null
}

type RunSummary = LogSummaries['run']

type ThreadFacts = Pick<InboxItem, 'threadId' | 'title' | 'firstMessage' | 'resourceId'>

/** The items of all threads, or of those of one owner: those of the run that was started last come first. */
export async function* inboxItems(
  log: LogStore,
  resourceId: string | null,
  { answered = false, limit = Infinity, before }: InboxOptions = {},
): AsyncGenerator<InboxItem, void, undefined> {
  let left = limit
  if (left <= 0) return
  for await (const { run, after } of waitingRuns(log, { resourceId, answered, before })) {
    const thread = await runThread(log, run, answered)
    if (thread === null || (resourceId !== null && thread.resourceId !== resourceId)) continue
    const all = await readableItems(log, run, thread)
    const items = all.filter((each) => (each.answered !== null) === answered)
    const passed = items.findIndex(({ item }) => item.callId === after)
    for (const each of items.slice(passed + 1)) {
      yield { ...thread, runId: run.runId, ...each, cursor: `${run.startedAt}/${run.runId}/${each.item.callId}` }
      left -= 1
      if (left === 0) return
    }
  }
}

/** The runs that can have items, newest first; `after`: the item of that run which the reader has. */
async function* waitingRuns(
  log: LogStore,
  { resourceId, answered, before }: Pick<InboxOptions, 'answered' | 'before'> & { readonly resourceId: string | null },
): AsyncGenerator<{ readonly run: RunSummary; readonly after: string | null }> {
  const place = before === undefined ? null : cursorPlace(before)
  const first = place === null ? null : await log.inspect({ kind: 'run', id: place.runId })
  if (place !== null && first !== null && (answered === true || first.status === 'paused'))
    yield { run: first, after: place.callId }
  for await (const run of log.list({
    status: answered === true ? undefined : 'paused',
    parentRunId: null,
    resourceId: resourceId ?? undefined,
    before: place ?? undefined,
  }))
    yield { run, after: null }
}

/** Null if the run belongs to no thread, or, for what waits, if it is not its latest. */
async function runThread(log: LogStore, { runId, metadata }: RunSummary, anyRun: boolean): Promise<ThreadFacts | null> {
  const threadId = metadata['conversation_id']
  if (typeof threadId !== 'string') return null
  const summary = await log.inspect({ kind: 'thread', id: threadId })
  if (summary === null) return null
  const { title, firstMessage, resourceId, runId: latest } = summary.digest ?? {}
  if (!anyRun && latest !== runId) return null
  return {
    threadId,
    title: stringOrEmpty(title),
    firstMessage: stringOrEmpty(firstMessage),
    resourceId: stringOrEmpty(resourceId) || null,
  }
}

/** Of a run whose log cannot be read, what its summary still has; the process is told. */
async function readableItems(log: LogStore, run: RunSummary, { threadId }: ThreadFacts): Promise<readonly AskedItem[]> {
  try {
    return await runItems(log, run)
  } catch (thrown) {
    if (!isDamage(thrown)) throw thrown
    tellProcess(threadId, `the answers of run \`${run.runId}\` are not in the inbox. ${thrown.message}`)
    return run.pending.map((item) => ({ item, askedAt: run.updatedAt, answered: null }))
  }
}

/** The items of a run in the order in which they were asked. An item that is asked again after its answer is another one. */
async function runItems(log: LogStore, { runId, pending, updatedAt }: RunSummary): Promise<readonly AskedItem[]> {
  const answered: AskedItem[] = []
  const waiting = new Map<string, AskedItem>()
  for await (const event of log.read({ kind: 'run', id: runId })) {
    if (event.kind === 'approval_requested')
      for (const item of event.items) waiting.set(item.callId, { item, askedAt: event.at, answered: null })
    if (event.kind !== 'answer_received') continue
    const item = waiting.get(event.callId)
    if (item === undefined) continue
    waiting.delete(event.callId)
    answered.push({ ...item, answered: { answer: event.answer, by: event.answer.by ?? null, at: event.at } })
  }
  const askedSince = (callId: string): string => waiting.get(callId)?.askedAt ?? updatedAt
  return [...answered, ...pending.map((item) => ({ item, askedAt: askedSince(item.callId), answered: null }))]
}

function stringOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function cursorPlace(before: Pick<InboxItem, 'cursor'> | string): {
  readonly startedAt: string
  readonly runId: string
  readonly callId: string
} {
  const cursor = typeof before === 'string' ? before : before.cursor
  const [, startedAt, runId, callId] = /^([^/]+)\/([^/]+)\/(.+)$/s.exec(cursor) ?? []
  if (startedAt !== undefined && runId !== undefined && callId !== undefined) return { startedAt, runId, callId }
  throw new SessionError(
    'invalid_options',
    `Expected \`before\` to be an item of an inbox or its cursor, got "${cursor.slice(0, 80)}".`,
  )
}
