import type { RunStatus, RunSummary } from '#core/log/run-summary.js'
import { checkPruneOptions } from './list-query.js'
import type { PruneOptions } from '#core/log/list-options.js'
import { keyOf, runRef } from '#core/log/ref.js'
import type { LogRef } from '#core/log/ref.js'
import { inPieces } from '#util/in-pieces.js'

/** The fields of a run that `removable` reads. */
export interface Prunable extends Pick<RunSummary, 'runId' | 'status' | 'updatedAt' | 'parent'> {
  /** Null: it cannot be read, and is removed however many events it has. */
  readonly lastSeq: number | null
}

/** One log refers to another. */
export interface Reference {
  readonly from: LogRef
  readonly to: LogRef
}

/** A log to be removed, unless a process owns it, or it has more events than it had. */
export interface Removal {
  readonly ref: LogRef
  /** Null: however many events it has. */
  readonly lastSeq: number | null
}

/** Collects the fields that `removable` reads, without the rest. */
export async function listPrunable(summaries: AsyncIterable<RunSummary>): Promise<Prunable[]> {
  const gathered: Prunable[] = []
  for await (const { runId, status, updatedAt, parent, lastSeq } of inPieces(summaries)) {
    gathered.push({ runId, status, updatedAt, parent, lastSeq: status === 'unreadable' ? null : lastSeq })
  }
  return gathered
}

/**
 * The logs to be removed. `runs`: all of them, newest first. A run that a tool started goes with the one at the top of
 * its tree, whose status counts. Throws `invalid_options` for invalid ones.
 */
export function removableRuns(
  { runs, references }: { readonly runs: readonly Prunable[]; readonly references: readonly Reference[] },
  options: PruneOptions,
  nowMs: number,
): Removal[] {
  checkPruneOptions(options)
  const threads = (options.only ?? []).filter(({ kind }) => kind === 'thread')
  const groups = [
    ...threads.map((ref): Removal[] => [{ ref, lastSeq: null }]),
    ...removableTrees(runs, options, nowMs).map((tree) =>
      tree.map(({ runId, lastSeq }): Removal => ({ ref: runRef(runId), lastSeq })),
    ),
  ]
  const removals = withoutNeeded(groups, references).flat()
  const running = new Set(runs.flatMap(({ runId, status }) => (status === 'running' ? [runId] : [])))
  const isRunning = ({ ref }: Removal): boolean => ref.kind === 'run' && running.has(ref.id)
  return options.owner !== undefined && removals.some(isRunning) ? [] : removals
}

/** For an owner also those with a running one, for which nothing is removed. */
function removableTrees(runs: readonly Prunable[], options: PruneOptions, nowMs: number): Prunable[][] {
  const { olderThanMs, keep = 0, also = [], only, owner } = options
  // The clock of another machine may be ahead: without a limit, no time is compared.
  const latest = olderThanMs === undefined ? null : new Date(nowMs - olderThanMs).toISOString()
  const named = only === undefined ? null : new Set(only.flatMap(({ kind, id }) => (kind === 'run' ? [id] : [])))
  const allowed: readonly RunStatus[] = ['completed', 'failed', 'cancelled', ...also]
  const isAllowed = ({ runId, status }: Prunable): boolean =>
    named === null ? allowed.includes(status) : named.has(runId)
  const isOver = ({ status, updatedAt }: Prunable): boolean =>
    status !== 'queued' && (owner !== undefined || status !== 'running') && (latest === null || updatedAt <= latest)
  return [...runTrees(runs).values()]
    .filter(([top]) => top !== undefined && isAllowed(top))
    .slice(keep)
    .filter((tree) => tree.every(isOver))
}

/** Without the groups that a remaining log refers to; those then remain too. */
function withoutNeeded(groups: readonly Removal[][], references: readonly Reference[]): readonly Removal[][] {
  if (references.length === 0) return groups
  const groupOf = new Map(groups.flatMap((group) => group.map(({ ref }) => [keyOf(ref), group] as const)))
  const remaining = new Set<readonly Removal[]>()
  const targets = targetsBySource(references)
  const waiting = [...targets.keys()].filter((key) => !groupOf.has(key))
  for (let from = waiting.pop(); from !== undefined; from = waiting.pop()) {
    for (const to of targets.get(from) ?? []) {
      const group = groupOf.get(to)
      if (group === undefined || remaining.has(group)) continue
      remaining.add(group)
      waiting.push(...group.map(({ ref }) => keyOf(ref)))
    }
  }
  return groups.filter((group) => !remaining.has(group))
}

function targetsBySource(references: readonly Reference[]): Map<string, string[]> {
  const targets = new Map<string, string[]>()
  for (const { from, to } of references) {
    const known = targets.get(keyOf(from))
    if (known === undefined) targets.set(keyOf(from), [keyOf(to)])
    else known.push(keyOf(to))
  }
  return targets
}

/** The runs by the one at the top, which comes first in its tree. */
function runTrees(runs: readonly Prunable[]): Map<string, Prunable[]> {
  const byId = new Map(runs.map((run) => [run.runId, run]))
  const trees = new Map<string, Prunable[]>()
  for (const run of runs) if (topRun(run, byId) === run) trees.set(run.runId, [run])
  for (const run of runs) {
    const top = topRun(run, byId)
    if (top !== run) trees.get(top.runId)?.push(run)
  }
  return trees
}

/** A run whose parent is not there is at the top. */
function topRun(run: Prunable, byId: ReadonlyMap<string, Prunable>): Prunable {
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
