import { HarnessError } from '../../contracts/errors.js'
import { unknownKey } from '../../util/unknown-key.js'
import type { RunStatus, RunSummary } from './summary.js'

export interface ListOptions {
  /** Only runs that stand so. Default: all. */
  readonly status?: RunStatus | readonly RunStatus[]
  /** Only runs that this one's tools started; null: only those at the top. Default: all. */
  readonly parentRunId?: string | null
  /** Only runs that come behind this one in the list: with the last of one page, the next page. */
  readonly before?: ListPlace
}

/** Where a run stands in a list. */
export type ListPlace = Pick<RunSummary, 'startedAt' | 'runId'>

/** At least one of `olderThanMs` and `keep`; what both allow is removed. */
export interface PruneOptions {
  /** Only runs whose last event is older, in ms. */
  readonly olderThanMs?: number
  /** So many of the newest are kept, those that tools started not counted. */
  readonly keep?: number
  /** Removes these too, beside those that have ended. Default: none. A run that is running is never removed. */
  readonly also?: readonly ('paused' | 'interrupted')[]
}

const STATUSES: readonly RunStatus[] = ['running', 'paused', 'interrupted', 'completed', 'failed', 'cancelled']

/** Which summaries belong into a list. Throws `invalid_options` for options that are none. */
export function listFilter(options: ListOptions = {}): (summary: RunSummary) => boolean {
  const { parentRunId, before } = options
  const statuses = statusesOf(options)
  return (summary) =>
    (statuses === undefined || statuses.includes(summary.status)) &&
    (parentRunId === undefined || (summary.parent?.runId ?? null) === parentRunId) &&
    (before === undefined || comparePlaces(before, summary) < 0)
}

/** The wanted statuses, checked; nothing when all are. */
export function statusesOf(options: ListOptions): readonly RunStatus[] | undefined {
  const problem = unknownKey(options, ['status', 'parentRunId', 'before'], 'option of `list`')
  if (problem !== undefined) throw new HarnessError('invalid_options', problem)
  const { status } = options
  if (status === undefined) return undefined
  const statuses = typeof status === 'string' ? [status] : status
  const strange = statuses.find((each) => !STATUSES.includes(each))
  if (strange === undefined) return statuses
  const message = `Expected \`status\` of \`list\` to be among ${STATUSES.join(', ')}, got \`${strange}\`.`
  throw new HarnessError('invalid_options', message)
}

/** The order of a list: negative when `left` comes first, being the newer. */
export function comparePlaces(left: ListPlace, right: ListPlace): number {
  if (left.startedAt !== right.startedAt) return left.startedAt > right.startedAt ? -1 : 1
  if (left.runId === right.runId) return 0
  return left.runId > right.runId ? -1 : 1
}

/** What `removable` looks at. */
export type Prunable = Pick<RunSummary, 'runId' | 'status' | 'updatedAt' | 'parent' | 'lastSeq'>

/** Gathers what `removable` looks at, without the rest. */
export async function prunables(summaries: AsyncIterable<RunSummary>): Promise<Prunable[]> {
  const gathered: Prunable[] = []
  for await (const { runId, status, updatedAt, parent, lastSeq } of summaries) {
    gathered.push({ runId, status, updatedAt, parent, lastSeq })
  }
  return gathered
}

/**
 * Which of the runs, given newest first, are to be removed. A run that a tool started goes with the one at the top that
 * it belongs to, which is the one that decides. Throws `invalid_options` for options that are none.
 */
export function removable(runs: readonly Prunable[], options: PruneOptions, nowMs: number): Prunable[] {
  checkPruneOptions(options)
  const { olderThanMs = 0, keep = 0, also = [] } = options
  const latest = new Date(nowMs - olderThanMs).toISOString()
  const allowed: readonly RunStatus[] = ['completed', 'failed', 'cancelled', ...also]
  const trees = treesOf(runs)
  const candidates = [...trees.values()].filter(([top]) => top !== undefined && allowed.includes(top.status))
  return candidates
    .slice(keep)
    .filter((tree) => tree.every(({ status, updatedAt }) => status !== 'running' && updatedAt <= latest))
    .flat()
}

/** The runs by the one at the top, which comes first in its tree. */
function treesOf(runs: readonly Prunable[]): Map<string, Prunable[]> {
  const byId = new Map(runs.map((run) => [run.runId, run]))
  const trees = new Map<string, Prunable[]>()
  for (const run of runs) if (topOf(run, byId) === run) trees.set(run.runId, [run])
  for (const run of runs) {
    const top = topOf(run, byId)
    if (top !== run) trees.get(top.runId)?.push(run)
  }
  return trees
}

/** A run whose parent is not there is at the top. */
function topOf(run: Prunable, byId: ReadonlyMap<string, Prunable>): Prunable {
  const seen = new Set<string>()
  let top = run
  while (top.parent !== null && !seen.has(top.runId)) {
    seen.add(top.runId)
    const parent = byId.get(top.parent.runId)
    if (parent === undefined) break
    top = parent
  }
  return top
}

function checkPruneOptions(options: PruneOptions): void {
  const problem = unknownKey(options, ['olderThanMs', 'keep', 'also'], 'option of `prune`')
  if (problem !== undefined) throw new HarnessError('invalid_options', problem)
  const { olderThanMs, keep, also = [] } = options
  if (olderThanMs === undefined && keep === undefined) {
    throw new HarnessError('invalid_options', 'Expected `prune` to be given `olderThanMs` or `keep`.')
  }
  if (olderThanMs !== undefined && !(olderThanMs >= 0 && olderThanMs <= 1e14)) {
    throw invalid('olderThanMs', 'a number of ms from 0 up', olderThanMs)
  }
  if (keep !== undefined && (!Number.isSafeInteger(keep) || keep < 0))
    throw invalid('keep', 'a whole number from 0 up', keep)
  const strange = also.find((status: string) => status !== 'paused' && status !== 'interrupted')
  if (strange !== undefined) throw invalid('also', '`paused` and `interrupted`', strange)
}

function invalid(name: string, expected: string, got: unknown): HarnessError {
  return new HarnessError(
    'invalid_options',
    `Expected \`${name}\` of \`prune\` to be ${expected}, got \`${String(got)}\`.`,
  )
}
