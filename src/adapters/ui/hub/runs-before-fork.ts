import { entryId } from '#contracts/entry.js'
import type { LogStore } from '#core/log/log.js'
import type { ThreadEvent, ThreadEventOf } from '#session/thread/thread-events.js'
import { storedEvents } from './child-runs.js'
import type { AnyRunEvent } from '../projection.js'

/** A run of a conversation, as messages are made of it. */
export interface StoredRun {
  readonly runId: string
  /** Of the messages with which it began. */
  readonly messageIds: readonly string[]
  readonly events: readonly AnyRunEvent[]
}

/** A place in a run: the end of the step of an entry, or the end of the run. */
type Place = NonNullable<NonNullable<ThreadEventOf<'thread_opened'>['fork']>['history']>

/** The runs that a fork continues, oldest first: the last of them up to the place where it was left. None for any other thread. */
export async function runsBeforeFork(log: LogStore, threadId: string): Promise<readonly StoredRun[]> {
  const fork = await threadFork(log, threadId)
  if (fork === undefined) return []
  const ids = await messageIdsOfRuns(log, fork.threadId)
  const runs: StoredRun[] = []
  for (let place = fork.history; place !== null;) {
    const { runId } = place
    const { events, before } = await runUpTo(log, place)
    runs.unshift({ runId, messageIds: ids.get(runId) ?? [], events })
    place = before
  }
  return runs
}

async function threadFork(log: LogStore, threadId: string): Promise<ThreadEventOf<'thread_opened'>['fork']> {
  for await (const event of log.read<ThreadEvent>({ kind: 'thread', id: threadId }))
    return event.kind === 'thread_opened' ? event.fork : undefined
  return undefined
}

/** The ids of the messages with which the runs of a thread began, and those of the threads that it continues. */
async function messageIdsOfRuns(log: LogStore, threadId: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const ids = new Map<string, readonly string[]>()
  for (let next: string | undefined = threadId; next !== undefined;) {
    const id: string = next
    next = undefined
    for await (const event of log.read<ThreadEvent>({ kind: 'thread', id })) {
      if (event.kind === 'run_begun') ids.set(event.runId, event.messageIds)
      if (event.kind === 'thread_opened') next = event.fork?.threadId
    }
  }
  return ids
}

/** The events of a run up to a place, and where the run before it was left; null if there is none in the log. */
async function runUpTo(
  log: LogStore,
  { runId, after }: Place,
): Promise<{ readonly events: readonly AnyRunEvent[]; readonly before: Place | null }> {
  const events: AnyRunEvent[] = []
  let before: Place | null = null
  let isReached = false
  for await (const event of storedEvents(log, runId)) {
    if (event.runId === runId) {
      // The results of a step are stored before the next request.
      if (isReached && (event.kind === 'model_request_started' || event.kind === 'run_failed')) break
      if (event.kind === 'run_started' && event.begun !== 'resumed' && 'runId' in event.history)
        before = { runId: event.history.runId, after: event.history.entryId }
      isReached ||= after !== undefined && eventEntryIds(event).includes(after)
    }
    events.push(event)
  }
  return { events, before }
}

/** The ids of the entries that an event brings, except those of its results. */
function eventEntryIds(event: AnyRunEvent): readonly string[] {
  if (event.kind === 'model_message') return [event.entry.id]
  if (event.kind === 'model_request_started') return event.entries.map(({ id }) => id)
  if (event.kind !== 'run_started' || event.prompt === null) return []
  const { history } = event
  return [entryId('entryId' in history ? Number(history.entryId.slice(1)) : history.length)]
}
