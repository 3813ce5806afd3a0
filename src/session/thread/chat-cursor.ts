import { HarnessError } from '#contracts/errors.js'
import type { LogStore } from '#core/log/log.js'
import type { RunEvent } from '#core/state/events.js'
import { isDamage, SessionError, threadNotFound } from '../errors.js'
import type { ThreadEvent } from './thread-events.js'

/** An event of a conversation: of its thread, or of one of its runs. `cursor` is the reader's place after it. */
export type ChatEvent = (ThreadEvent | RunEvent) & { readonly cursor: string }

/** A place in the merged events of a thread and its runs. */
export interface ChatPlace {
  /** Number of the last event of the thread. */
  readonly thread: number
  /** The latest run, and the number of its last event. */
  readonly runId: string | null
  readonly run: number
}

export const BEGINNING: ChatPlace = { thread: 0, runId: null, run: 0 }

/** `<thread seq>.<run id>.<seq>`; without a run, the number alone. */
export function chatCursor({ thread, runId, run }: ChatPlace): string {
  return runId === null ? String(thread) : `${thread}.${runId}.${run}`
}

/** Throws a `SessionError` for a string that is not a cursor. */
export function parseCursor(cursor: string): ChatPlace {
  const [, thread, runId, run] = /^(\d{1,15})(?:\.(.+)\.(\d{1,15}))?$/.exec(cursor) ?? []
  if (thread === undefined) throw notACursor(cursor)
  return { thread: Number(thread), runId: runId ?? null, run: Number(run ?? 0) }
}

export function notACursor(cursor: string): SessionError {
  const message = `Expected \`after\` to be the cursor of an event of the conversation, got "${cursor.slice(0, 80)}".`
  return new SessionError('invalid_options', message)
}

/** The place after `event`; null if a reader at `place` has passed it. */
export function placeAfter(place: ChatPlace, event: ThreadEvent | RunEvent): ChatPlace | null {
  if ('threadId' in event) {
    if (event.seq <= place.thread) return null
    if (event.kind === 'run_begun') return { thread: event.seq, runId: event.runId, run: 0 }
    return { thread: event.seq, runId: place.runId, run: place.run }
  }
  if (event.runId !== place.runId) return null
  if (!event.durable) return event.seq < place.run ? null : place
  return event.seq <= place.run ? null : { thread: place.thread, runId: place.runId, run: event.seq }
}

/**
 * The stored events after a place, in the order in which every reader gets them. Of a damaged run they are those before the damage, of
 * which `onDamage` is told.
 */
export async function* storedEvents(
  log: LogStore,
  threadId: string,
  from: ChatPlace,
  onDamage: (error: HarnessError, runId: string) => void = () => undefined,
): AsyncGenerator<ThreadEvent | RunEvent, void, undefined> {
  let { thread, runId, run } = from
  const eventsUpTo = async function* (limit: number): AsyncGenerator<RunEvent> {
    if (runId === null || run >= limit) return
    for await (const event of readable(log, { runId, after: run }, onDamage)) {
      if (event.seq > limit) return
      run = event.seq
      yield event
    }
  }
  const eventsOfThread = async function* (event: ThreadEvent): AsyncGenerator<ThreadEvent | RunEvent> {
    if (event.after !== null && event.after.runId === runId) yield* eventsUpTo(event.after.seq)
    yield event
    thread = event.seq
    if (event.kind === 'run_begun') [runId, run] = [event.runId, 0]
  }
  const ref = { kind: 'thread', id: threadId } as const
  for await (const event of log.read<ThreadEvent>(ref, { after: thread })) {
    // The log of something else.
    if (thread === 0 && event.kind !== 'thread_opened') throw threadNotFound(threadId)
    if (event.kind === 'thread_opened' && (event.version as number) !== 1)
      throw new HarnessError('invalid_log', `Thread \`${threadId}\` has version \`${event.version}\`, not 1.`)
    yield* eventsOfThread(event)
  }
  for (;;) {
    // A run may have begun again meanwhile: its events come after those of the thread that are older.
    const tail = runId === null ? [] : await collectAll(readable(log, { runId, after: run }, onDamage))
    const more = tail.length === 0 ? [] : await collectAll(log.read<ThreadEvent>(ref, { after: thread }))
    if (more.length === 0) {
      yield* tail
      return
    }
    for (const event of more) yield* eventsOfThread(event)
  }
}

/** The events of a run after one, as far as they can be read. */
async function* readable(
  log: LogStore,
  { runId, after }: { readonly runId: string; readonly after: number },
  onDamage: (error: HarnessError, runId: string) => void,
): AsyncGenerator<RunEvent, void, undefined> {
  let hasRead = after > 0
  try {
    for await (const event of log.read({ kind: 'run', id: runId }, { after })) {
      hasRead = true
      yield event
    }
  } catch (error) {
    if (!isDamage(error)) throw error
    if (hasRead) onDamage(error, runId)
    // Its process stores the first event, or ended meanwhile.
    else if (await hasEvents(log, runId)) yield* readable(log, { runId, after }, onDamage)
  }
}

async function hasEvents(log: LogStore, runId: string): Promise<boolean> {
  const reading = log.read({ kind: 'run', id: runId })[Symbol.asyncIterator]()
  return reading.next().then(
    ({ done }) => done !== true,
    () => false,
  )
}

async function collectAll<Event>(events: AsyncIterable<Event>): Promise<readonly Event[]> {
  const list: Event[] = []
  for await (const event of events) list.push(event)
  return list
}
