import { HarnessError, messageOf } from '#contracts/errors.js'
import { itemsOf } from '#util/queue/items-of.js'
import { isObject, parseJson } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { shownValue } from '#util/mismatch.js'
import { LONGEST_TIMER_MS } from '#util/timeout.js'
import type { DurableEvent } from '../state/events.js'
import type { LogSummaries, RunDigest, RunSummary } from './run-summary.js'
import type { ListOptions, PruneOptions, WaitingOptions } from './list-options.js'
import { checkRef, nameOf } from './ref.js'
import type { LogKind, LogRef } from './ref.js'

/** The fields that a log reads in any event. The others are the writer's own, and plain JSON. */
export interface LogEvent {
  readonly kind: string
  /** Numbers the events of a log from 1 without gaps. */
  readonly seq: number
  /** ISO 8601 in UTC. */
  readonly at: string
}

/** The summary of a log, as its writer sees it. Lists of threads can be filtered by its `resourceId`. */
export type LogDigest = RunDigest | JsonObject

export interface AppendOptions {
  /** Name under which the writer has claimed the log. */
  readonly owner?: string | undefined
  /** The summary of the log after these events. A getter computes it: only a log that stores digests reads it. */
  readonly digest?: LogDigest | undefined
  /** Logs that these events refer to. They are kept for as long as this one. */
  readonly references?: readonly LogRef[] | undefined
  /** Ids of posts (`takePosts`) that these events deal with: they leave the inbox in the same transaction. */
  readonly posts?: readonly string[] | undefined
}

export interface ReadOptions {
  /** Number of the last event that the reader has seen. Default 0: all events. */
  readonly after?: number | undefined
}

/** What `append` of a log returns that has stored the events already: nothing waits then. */
export const STORED: Promise<void> = Promise.resolve()

/**
 * Stores the events of runs: all that a harness needs. The harness calls `append` on the very object that it was given,
 * one call at a time for each run, with events numbered without gaps.
 */
export interface RunLog {
  /**
   * Resolves when the events are stored. Must reject, and store nothing, if `events` do not follow the last stored one
   * (with `run_exists` if they begin a run that is stored), and with `run_owned` if another owner than `owner` has claimed the log, or none has and there is an `owner`. A
   * writer that loses its claim during an append may be rejected although the events were stored.
   */
  append(ref: LogRef, events: readonly DurableEvent[], options?: AppendOptions): Promise<void>
  /** The events numbered above `after`, in order; none for an unknown log. */
  read(ref: LogRef, options?: ReadOptions): AsyncIterable<DurableEvent>
  /**
   * Makes `owner` the only one who may append, for `ttlMs` from now; called again to extend that. False if another owner
   * has claimed the log, that claim has not expired, and its process is not known to have ended. 0 ms releases the log.
   * An expired claim stays valid until another owner claims the log.
   */
  claim?(ref: LogRef, owner: string, ttlMs: number): Promise<boolean>
}

export interface FollowOptions extends ReadOptions {
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal | undefined
}

/** A message to the owner of a log. */
export interface Post {
  /** Posts with one id are one post. */
  readonly id: string
  readonly body: JsonValue
}

/**
 * Stores the logs of runs and threads, with the same guarantees for both: the memory, file, SQLite and PostgreSQL logs.
 * `append`, `read` and `claim` are as in `RunLog`.
 */
export interface LogStore {
  append(ref: LogRef, events: readonly LogEvent[], options?: AppendOptions): Promise<void>
  read<Event extends LogEvent = DurableEvent>(ref: LogRef, options?: ReadOptions): AsyncIterable<Event>
  claim(ref: LogRef, owner: string, ttlMs: number): Promise<boolean>
  /** Puts a message into the log's inbox. Does nothing if it has or had a post with this id. */
  post(ref: LogRef, post: Post): Promise<void>
  /**
   * The posts in the inbox, in the order of their arrival. Rejects with `run_owned` unless `owner` has claimed the log. A post
   * stays in the inbox until an append names it (`posts`): until then each call gives it, to this owner and to the next. So none
   * is overlooked if the answer of a call was lost.
   */
  takePosts(ref: LogRef, owner: string): Promise<readonly Post[]>
  /** The events numbered above `after`: first the stored ones, then each as it is stored, by whatever process. */
  follow?<Event extends LogEvent = DurableEvent>(ref: LogRef, options?: FollowOptions): AsyncIterable<Event>
  /** The summary of a log; null if it is unknown. Changes nothing. */
  inspect<Kind extends LogKind>(ref: LogRef<Kind>): Promise<LogSummaries[Kind] | null>
  /**
   * Summaries of the logs of one kind. Runs: the most recently started first, then by id. Threads: the most recently written
   * first, then by id. With `changedAfter` in the order of their last append. Changes nothing.
   */
  list<Kind extends LogKind = 'run'>(options?: ListOptions<Kind>): AsyncIterable<LogSummaries[Kind]>
  /** The oldest runs that wait for a process, queued or interrupted: those at the top that no process owns. Changes nothing. */
  waiting(options?: WaitingOptions): Promise<readonly RunSummary[]>
  /** The logs that refer to this one, in no particular order. Absent: it is not known. */
  referrers?(ref: LogRef): Promise<readonly LogRef[]>
  /** Removes logs that no other log refers to, with their inboxes. Resolves to their number. */
  prune(options: PruneOptions): Promise<number>
  /** Overwrites what removed logs have left in the files of the store. Absent: they leave nothing there, or it is not known how. */
  scrub?(): Promise<void>
  /** The events of a run with the conversations that it refers to in them: a log that stands alone. */
  export(runId: string): AsyncIterable<DurableEvent>
  /** True if the logs outlive the process. */
  readonly outlives: boolean
}

/** The members of a `LogStore` that a log has. A host may pass a plain `RunLog`, which has few of them. */
export function asLogStore(log: RunLog): Partial<LogStore> {
  return log as Partial<LogStore>
}

/** The rejection of an append by another process than the log's owner. */
export function ownedByAnother(ref: LogRef, owner: string | undefined): HarnessError {
  const message =
    owner === undefined
      ? `The log of ${nameOf(ref)} has been claimed: only its owner may append to it.`
      : `The log of ${nameOf(ref)} is not, or no longer, claimed by \`${owner}\`, which may not append to it.`
  return new HarnessError('run_owned', message)
}

/** The rejection of a store that failed to `act`: `thrown` itself if it is a `HarnessError`. */
export function storeFailure(act: string, thrown: unknown): HarnessError {
  if (thrown instanceof HarnessError) return thrown
  return new HarnessError('store_failure', `The log could not ${act}: ${messageOf(thrown)}`, { cause: thrown })
}

/** The events of a log. Whatever a custom log throws or gives instead of events is a `store_failure`. */
export function eventsIn(
  log: RunLog,
  ref: LogRef,
  options: ReadOptions = {},
): AsyncGenerator<DurableEvent, void, undefined> {
  const failed = (thrown: unknown): Error => storeFailure(`read ${nameOf(ref)}`, thrown)
  return itemsOf(() => log.read(ref, options), { isItem: isEvent, expected: EVENTS, failed })
}

const EVENTS = '`read` to return an async iterable of events with `kind` and `seq`'

/** The event of a stored JSON text; undefined if it has none. */
export function parseEvent(text: string): LogEvent | undefined {
  const parsed = parseJson(text)
  return parsed.ok && isEvent(parsed.value) ? parsed.value : undefined
}

function isEvent(value: unknown): value is DurableEvent {
  return isObject(value) && typeof value['kind'] === 'string' && typeof value['seq'] === 'number'
}

/** Rejects invalid owners and times. */
export function checkClaim(owner: unknown, ttlMs: unknown): void {
  if (typeof owner !== 'string' || owner === '') {
    throw new HarnessError('invalid_options', 'Expected the owner of a claim to be a string that is not empty.')
  }
  if (typeof ttlMs === 'number' && ttlMs >= 0 && ttlMs <= LONGEST_TIMER_MS) return
  const message = `Expected the time of a claim to be a number of ms from 0 up, got ${shownValue(ttlMs)}.`
  throw new HarnessError('invalid_options', message)
}

/** Rejects an invalid name of a log, and anything but an id with a body. */
export function checkPost(ref: unknown, post: unknown): void {
  checkRef(ref)
  const { id, body } = (typeof post === 'object' && post !== null ? post : {}) as Partial<Post>
  if (typeof id === 'string' && id !== '' && body !== undefined) return
  throw new HarnessError('invalid_options', 'Expected a post to have an `id` that is not empty, and a JSON `body`.')
}
