import { HarnessError } from '#contracts/errors.js'
import { shownValue } from '#util/mismatch.js'
import { unknownKey } from '#util/suggest.js'
import type { LogSummaries, RunStatus, RunSummary, ThreadSummary } from './digest.js'
import type { LogKind, LogRef } from './ref.js'

export interface ListOptions<Kind extends LogKind = LogKind> {
  /** Default: runs. */
  readonly kind?: Kind | undefined
  /** Only runs with this status, or one of these. Default: all. */
  readonly status?: RunStatus | readonly RunStatus[] | undefined
  /** Only runs that this one's tools started; null: only those at the top. Default: all. */
  readonly parentRunId?: string | null | undefined
  /** Only runs with this `metadata.resourceId`, or threads with this `resourceId` in their digest. Default: all. */
  readonly resourceId?: string | undefined
  /** Only logs that come after this one in the list. Pass the last one of a page for the next page. */
  readonly before?: ListPlaces[Kind] | undefined
}

/** The fields that give a run's place in a list. */
export type ListPlace = Pick<RunSummary, 'startedAt' | 'runId'>

export interface ListPlaces {
  readonly run: ListPlace
  readonly thread: Pick<ThreadSummary, 'updatedAt' | 'threadId'>
}

/** At least one of `olderThanMs`, `keep` and `only`. A run is removed if all of them allow it. */
export interface PruneOptions {
  /** Only runs whose last event is older than this, in ms. */
  readonly olderThanMs?: number | undefined
  /** Keeps this many of the newest runs; runs that tools started are not counted. */
  readonly keep?: number | undefined
  /** Statuses that are removed in addition to those of ended runs. Default: none. A running run is never removed. */
  readonly also?: readonly ('paused' | 'interrupted')[] | undefined
  /** Only these logs, whatever their status, unless a process owns them. The only way to remove a thread. */
  readonly only?: readonly LogRef[] | undefined
  /**
   * Logs that this owner has claimed are removed as if nobody owned them; its claims of removed logs end. None is removed if somebody
   * else owns one of them.
   */
  readonly owner?: string | undefined
}

const STATUSES: readonly RunStatus[] = [
  ...(['running', 'paused', 'interrupted', 'completed', 'failed', 'cancelled', 'unreadable'] as const),
]
const KINDS: readonly string[] = ['run', 'thread']
const LIST_OPTIONS = ['kind', 'status', 'parentRunId', 'resourceId', 'before']

/** Where a log is in the list of its kind: newest first by time, then by id. */
export interface Place {
  readonly time: string
  readonly id: string
}

/** The options of `list`, checked and with their defaults. */
export interface ListQuery {
  readonly kind: LogKind
  /** Undefined: all. */
  readonly statuses: readonly RunStatus[] | undefined
  /** Undefined: all; null: those at the top. */
  readonly parentRunId: string | null | undefined
  readonly resourceId: string | undefined
  readonly before: Place | null
}

/** Throws `invalid_options` for invalid ones. */
export function listQuery(options: ListOptions = {}): ListQuery {
  const problem = unknownKey(options, LIST_OPTIONS, 'option of `list`')
  if (problem !== undefined) throw new HarnessError('invalid_options', problem)
  const { kind = 'run', status, parentRunId, resourceId, before } = options
  if (!KINDS.includes(kind)) throw invalidQuery('kind', 'list', ['`run` or `thread`', kind])
  if (kind === 'thread' && (status !== undefined || parentRunId !== undefined)) {
    throw new HarnessError('invalid_options', 'Expected `status` and `parentRunId` of `list` only for runs.')
  }
  const place = before === undefined ? null : 'runId' in before ? runPlace(before) : threadPlace(before)
  return { kind, statuses: statusesOf(status), parentRunId, resourceId, before: place }
}

function statusesOf(status: ListOptions['status']): readonly RunStatus[] | undefined {
  if (status === undefined) return undefined
  const statuses = typeof status === 'string' ? [status] : status
  const invalidValue = statuses.find((each) => !STATUSES.includes(each))
  if (invalidValue === undefined) return statuses
  throw invalidQuery('status', 'list', [`one of ${STATUSES.join(', ')}`, invalidValue])
}

/** True if a summary belongs in the list. */
export function isListed(query: ListQuery, summary: LogSummaries[LogKind]): boolean {
  if (query.resourceId !== undefined && resourceIdOf(summary) !== query.resourceId) return false
  if (query.before !== null && comparePlaces(query.before, placeOf(summary)) >= 0) return false
  if (!('runId' in summary)) return true
  const { statuses, parentRunId } = query
  return (
    (statuses === undefined || statuses.includes(summary.status)) &&
    (parentRunId === undefined || (summary.parent?.runId ?? null) === parentRunId)
  )
}

/** The last event of a log, as far as it shows the status of a run. */
interface LastEvent {
  readonly kind: string
  readonly pending?: unknown
}

/** True if the last event of a run shows that it has none of the statuses: the run need not be read. */
export function isRuledOut({ statuses }: ListQuery, last: LastEvent | null): boolean {
  if (statuses === undefined || last === null || statuses.includes('unreadable')) return false
  const hasOneOf = (...wanted: readonly RunStatus[]): boolean => wanted.some((status) => statuses.includes(status))
  if (last.kind !== 'run_completed' && last.kind !== 'run_failed') return !hasOneOf('running', 'interrupted')
  const { pending = [] } = last
  if (Array.isArray(pending) && pending.length === 0) return !hasOneOf('completed', 'failed', 'cancelled')
  return !hasOneOf('paused')
}

function resourceIdOf(summary: LogSummaries[LogKind]): unknown {
  return 'runId' in summary ? summary.metadata['resourceId'] : summary.digest?.['resourceId']
}

export function placeOf(summary: LogSummaries[LogKind]): Place {
  return 'runId' in summary ? runPlace(summary) : threadPlace(summary)
}

function runPlace({ startedAt, runId }: ListPlace): Place {
  return { time: startedAt, id: runId }
}

function threadPlace({ updatedAt, threadId }: ListPlaces['thread']): Place {
  return { time: updatedAt, id: threadId }
}

/** The order of a list: negative if `left` comes first, being the newer. */
export function comparePlaces(left: Place, right: Place): number {
  if (left.time !== right.time) return left.time > right.time ? -1 : 1
  if (left.id === right.id) return 0
  return left.id > right.id ? -1 : 1
}

export function checkPruneOptions(options: PruneOptions): void {
  const problem = unknownKey(options, ['olderThanMs', 'keep', 'also', 'only', 'owner'], 'option of `prune`')
  if (problem !== undefined) throw new HarnessError('invalid_options', problem)
  const { olderThanMs, keep, also = [], only } = options
  if (olderThanMs === undefined && keep === undefined && only === undefined) {
    throw new HarnessError('invalid_options', 'Expected `prune` to be given `olderThanMs`, `keep` or `only`.')
  }
  if (olderThanMs !== undefined && !(olderThanMs >= 0 && olderThanMs <= 1e14)) {
    throw invalidQuery('olderThanMs', 'prune', ['a number of ms from 0 up', olderThanMs])
  }
  if (keep !== undefined && (!Number.isSafeInteger(keep) || keep < 0)) {
    throw invalidQuery('keep', 'prune', ['a whole number from 0 up', keep])
  }
  const invalidValue = also.find((status: string) => status !== 'paused' && status !== 'interrupted')
  if (invalidValue !== undefined) throw invalidQuery('also', 'prune', ['`paused` and `interrupted`', invalidValue])
}

function invalidQuery(name: string, method: string, [expected, got]: readonly [string, unknown]): HarnessError {
  const message = `Expected \`${name}\` of \`${method}\` to be ${expected}, got ${shownValue(got)}.`
  return new HarnessError('invalid_options', message)
}
