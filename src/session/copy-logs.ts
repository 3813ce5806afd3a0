import { HarnessError } from '#contracts/errors.js'
import { invalidOptions } from '#contracts/parse.js'
import type { LogEvent, LogStore } from '#core/log/log.js'
import { keyOf } from '#core/log/ref.js'
import type { LogKind, LogRef } from '#core/log/ref.js'
import type { DurableEvent } from '#core/state/events.js'
import { canonicalJson, isObject } from '#util/json.js'
import { eventReferences } from './thread/thread-writer.js'
import type { NewThreadEvent } from './thread/thread-events.js'

/** What `copyLogs` has done. */
export interface CopiedLogs {
  /** Number of logs that were copied: those that were not there, or had fewer events. */
  readonly copied: number
  /** Number of logs that were there already. */
  readonly present: number
  /** Logs that were not copied: a process owns them, they cannot be read, or the target has another log of that name. */
  readonly left: readonly LogRef[]
}

/** So many events are appended together. */
const TOGETHER = 200
/** How long the two logs of a name are claimed for the next events, in ms. */
const CLAIM_MS = 60_000

/**
 * Copies all runs and conversations into another store, such as from files into PostgreSQL: with what waits in them (approvals,
 * queues, messages to other processes), so that they continue there. The source stays as it is. End the processes that use it first:
 * what one of them owns still is in `left`. Another call copies what is missing. Rejects with `invalid_options` for anything but two
 * stores, and with `store_failure` if one of them fails.
 *
 * @example
 * const { copied, left } = await copyLogs(fileLog('runs'), postgresLog({ connectionString }))
 * console.log(`${copied} logs were copied.`)
 * for (const { kind, id } of left) console.warn(`Not copied: ${kind} ${id}`)
 */
export async function copyLogs(from: LogStore, to: LogStore): Promise<CopiedLogs> {
  for (const log of [from, to] as readonly unknown[])
    if (!isObject(log) || typeof log['list'] !== 'function' || typeof log['takePosts'] !== 'function')
      throw invalidOptions(
        'Expected `copyLogs` to be given two stores, such as `fileLog(folder)` and `postgresLog({ connectionString })`.',
      )
  const counts = { copied: 0, present: 0 }
  const left = new Map<string, LogRef>()
  for (const kind of ['run', 'thread'] as const) {
    for (const ref of await oldestFirst(from, kind)) {
      const done = await copyLog(ref, { from, to })
      if (done === 'left') left.set(keyOf(ref), ref)
      else counts[done] += 1
    }
  }
  return { ...counts, left: [...left.values()] }
}

/** A child run comes behind its parent, which it belongs to. */
async function oldestFirst(log: LogStore, kind: LogKind): Promise<readonly LogRef[]> {
  const refs: LogRef[] = []
  for await (const summary of log.list({ kind }))
    refs.push({ kind, id: 'runId' in summary ? summary.runId : summary.threadId })
  return refs.reverse()
}

interface Stores {
  readonly from: LogStore
  readonly to: LogStore
}

/** Copies the events that are missing, and the posts, while nobody else can write to either log. */
async function copyLog(ref: LogRef, { from, to }: Stores): Promise<'copied' | 'present' | 'left'> {
  const owner = `copy_${globalThis.crypto.randomUUID()}`
  const claim = async (): Promise<boolean> =>
    (await from.claim(ref, owner, CLAIM_MS)) && (await to.claim(ref, owner, CLAIM_MS))
  try {
    if (!(await claim())) return 'left'
    const [source, target] = [await from.inspect(ref), await to.inspect(ref)]
    if (source === null) return 'present'
    if (isUnreadable(source) || (target !== null && isUnreadable(target))) return 'left'
    const after = target?.lastSeq ?? 0
    if (!(await isSameUpTo(ref, { from, to }, Math.min(after, source.lastSeq)))) return 'left'
    const digest = 'digest' in source ? (source.digest ?? undefined) : undefined
    for await (const { events, isLast } of batches(from.read<LogEvent>(ref, { after }))) {
      if (!(await claim())) return 'left'
      const references = await referencesIn(ref.kind, events)
      await to.append(ref, events, { owner, references, ...(isLast && { digest }) })
    }
    for (const post of await from.takePosts(ref, owner)) await to.post(ref, post)
    return after < source.lastSeq ? 'copied' : 'present'
  } catch (error) {
    // A damaged log keeps no other from being copied.
    if (error instanceof HarnessError && (error.code === 'invalid_log' || error.code === 'invalid_state')) return 'left'
    throw error
  } finally {
    await Promise.allSettled([from.claim(ref, owner, 0), to.claim(ref, owner, 0)])
  }
}

function isUnreadable(summary: object): boolean {
  return 'status' in summary ? summary.status === 'unreadable' : 'error' in summary
}

/** Whether both logs have the same event of that number: each is the beginning of the other. */
async function isSameUpTo(ref: LogRef, { from, to }: Stores, seq: number): Promise<boolean> {
  if (seq === 0) return true
  const eventOf = async (log: LogStore): Promise<string | null> => {
    for await (const event of log.read<LogEvent>(ref, { after: seq - 1 })) return canonicalJson(event)
    return null
  }
  return (await eventOf(from)) === (await eventOf(to))
}

async function* batches(
  events: AsyncIterable<LogEvent>,
): AsyncGenerator<{ readonly events: readonly LogEvent[]; readonly isLast: boolean }> {
  let batch: LogEvent[] = []
  for await (const event of events) {
    if (batch.length === TOGETHER) {
      yield { events: batch, isLast: false }
      batch = []
    }
    batch.push(event)
  }
  if (batch.length > 0) yield { events: batch, isLast: true }
}

async function referencesIn(kind: LogKind, events: readonly LogEvent[]): Promise<readonly LogRef[]> {
  if (kind === 'thread') return (events as unknown as NewThreadEvent[]).flatMap(eventReferences)
  const { referencesOf } = await import('#core/log/run-writer.js')
  return (events as DurableEvent[]).flatMap(referencesOf)
}
