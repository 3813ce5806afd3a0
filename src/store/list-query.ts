import type { HarnessError } from '#contracts/errors.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import type { LogSummaries, RunDigest, RunStatus } from '#core/log/run-summary.js'
import type { ListOptions, ListPlace, ListPlaces, PruneOptions, WaitingOptions } from '#core/log/list-options.js'
import type { LogKind } from '#core/log/ref.js'
import { shownValue } from '#util/mismatch.js'
import {
  anything,
  either,
  integer,
  leaf,
  list,
  nullable,
  number,
  oneOf,
  partial,
  record,
  string,
} from '#util/validate.js'

const STATUS = oneOf(
  ...(['queued', 'running', 'paused', 'interrupted', 'completed', 'failed', 'cancelled', 'unreadable'] as const),
)
const LIST_OPTIONS = partial<ListOptions>({
  kind: oneOf('run', 'thread'),
  status: either(STATUS, list(STATUS)),
  parentRunId: nullable(string),
  resourceId: string,
  labels: record(string),
  changedAfter: nullable(string),
  before: anything(),
})
const COUNT = leaf<number>(
  'a whole number from 1 up',
  (value) => value === Infinity || (Number.isSafeInteger(value) && Number(value) > 0),
)
const WAITING_OPTIONS = partial<WaitingOptions>({ limit: COUNT, perTenant: COUNT })
const PRUNE_OPTIONS = partial<PruneOptions>({
  olderThanMs: number(0, 1e14),
  keep: integer(0),
  also: list(oneOf('paused', 'interrupted')),
  only: anything(),
  owner: string,
})

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
  /** Empty: all. */
  readonly labels: readonly (readonly [name: string, value: string])[]
  /** Undefined: newest first. */
  readonly changedAfter: string | null | undefined
  readonly before: Place | null
}

/** Throws `invalid_options` for invalid ones. */
export function listQuery(options: ListOptions = {}): ListQuery {
  const {
    kind = 'run',
    status,
    parentRunId,
    resourceId,
    changedAfter,
    before,
    ...given
  } = parse(LIST_OPTIONS, options, '`list`')
  const labels = Object.entries(given.labels ?? {})
  if (kind === 'thread' && (status !== undefined || parentRunId !== undefined || labels.length > 0))
    throw invalidOptions('Expected `status`, `parentRunId` and `labels` of `list` only for runs.')
  if (changedAfter !== undefined && before !== undefined)
    throw invalidOptions('Expected one of `changedAfter` and `before` of `list`.')
  const place = before === undefined ? null : 'runId' in before ? runPlace(before) : threadPlace(before)
  const statuses = typeof status === 'string' ? [status] : status
  return { kind, statuses, parentRunId, resourceId, labels, changedAfter, before: place }
}

/** The phases that runs of these statuses can have; null: any. */
export function queriedPhases(statuses: ListQuery['statuses']): readonly RunDigest['phase'][] | null {
  // What is stored in short of a run that cannot be read may say anything.
  if (statuses === undefined || statuses.includes('unreadable')) return null
  const isOpen = (status: RunStatus): boolean => status === 'running' || status === 'interrupted'
  return [...new Set(statuses.map((status) => (isOpen(status) ? 'open' : status) as RunDigest['phase']))]
}

/** True if a summary belongs in the list. */
export function isListed(query: ListQuery, summary: LogSummaries[LogKind]): boolean {
  if (query.resourceId !== undefined && resourceIdOf(summary) !== query.resourceId) return false
  if (query.before !== null && comparePlaces(query.before, placeOf(summary)) >= 0) return false
  if (!('runId' in summary)) return true
  const { statuses, parentRunId, labels } = query
  return (
    labels.every(([name, value]) => summary.labels[name] === value) &&
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
  if (last.kind === 'run_queued') return !hasOneOf('queued')
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

/** The options of `waiting`, with their defaults. Throws `invalid_options` for invalid ones. */
export function waitingQuery(options: WaitingOptions = {}): { readonly limit: number; readonly perTenant: number } {
  const { limit = 100, perTenant = Infinity } = parse(WAITING_OPTIONS, options, '`waiting`')
  return { limit, perTenant }
}

/** The rejection of a cursor that is none of this log's. */
export function invalidCursor(cursor: string): HarnessError {
  const expected = 'the `cursor` of a summary of this log'
  return invalidOptions(`Expected \`changedAfter\` of \`list\` to be ${expected}, got ${shownValue(cursor)}.`)
}

export function checkPruneOptions(options: PruneOptions): void {
  const { olderThanMs, keep, only } = parse(PRUNE_OPTIONS, options, '`prune`')
  if (olderThanMs === undefined && keep === undefined && only === undefined)
    throw invalidOptions('Expected `prune` to be given `olderThanMs`, `keep` or `only`.')
}
