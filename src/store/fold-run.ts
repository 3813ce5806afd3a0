import { HarnessError } from '#contracts/errors.js'
import type { HarnessErrorCode } from '#contracts/errors.js'
import { NO_USAGE } from '#contracts/run-usage.js'
import { digestOf } from '#core/log/run-summary.js'
import type { RunDigest, RunStatus, RunSummary } from '#core/log/run-summary.js'
import { waitingQuery } from './list-query.js'
import type { WaitingOptions } from '#core/log/list-options.js'
import type { LogStore } from '#core/log/log.js'
import { runRef } from '#core/log/ref.js'
import type { DurableEvent } from '#core/state/events.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'

/**
 * The digest of a run whose writer passed none, computed from its events; null if it has none. Rejects with
 * `invalid_log` if they do not begin with `run_started`, or cannot be those of a run.
 */
export async function foldRun(log: LogStore, runId: string): Promise<RunDigest | null> {
  // Writers pass digests: only a file log, and logs of other programs, need this.
  const { loadRun } = await import('#run/resume/load-run.js')
  const run = await loadRun(log, runId)
  return run === null ? null : digestOf(run.state)
}

/** The events of a run that stand alone. */
export async function* exportRun(log: LogStore, runId: string): AsyncGenerator<DurableEvent> {
  const { selfContained } = await import('#run/resume/self-contained.js')
  yield* selfContained(log, log.read(runRef(runId)))
}

/**
 * What `reading` gives, for a list: `damaged` in place of a log that cannot be read, null for one that is gone. One log never
 * hides or breaks the others.
 */
export async function unlessDamaged<T>(
  reading: Promise<T | null>,
  damaged: (error: HarnessError) => T | Promise<T>,
): Promise<T | null> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof HarnessError && DAMAGED.has(error.code)) return damaged(error)
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** The summary of a run whose log cannot be read, with what its first event says. */
export async function unreadableRun(
  log: LogStore,
  known: Pick<RunSummary, 'runId' | 'startedAt' | 'updatedAt' | 'lastSeq' | 'cursor'>,
  error: HarnessError,
): Promise<RunSummary> {
  const reading = log.read(runRef(known.runId))[Symbol.asyncIterator]().next()
  const first: unknown = await reading.then(
    ({ value }) => value as unknown,
    () => undefined,
  )
  const { parentRunId, metadata } = isObject(first) ? first : {}
  const parent = typeof parentRunId === 'string' ? { runId: parentRunId, callId: '', agentName: '' } : null
  return {
    ...known,
    ...{ status: 'unreadable', error: { code: error.code, message: error.message }, usage: NO_USAGE, pending: [] },
    labels: {},
    ...{ stopReason: null, endedAt: null, provider: null, model: null, parent },
    metadata: isObject(metadata) ? (metadata as JsonObject) : {},
  }
}

/**
 * The oldest runs that wait for a process. `candidates` gives runs that may, the oldest first.
 */
export async function chosenWaiting(
  options: WaitingOptions | undefined,
  candidates: (full: ReadonlySet<string>) => AsyncIterable<RunSummary | null>,
): Promise<readonly RunSummary[]> {
  const { limit, perTenant } = waitingQuery(options)
  const chosen: RunSummary[] = []
  const counts = new Map<string, number>()
  const full = new Set<string>()
  for await (const run of candidates(full)) {
    if (run === null || run.parent !== null || !WAITING.has(run.status)) continue
    const tenant = tenantOf(run)
    const count = (counts.get(tenant) ?? 0) + 1
    if (count > perTenant) continue
    counts.set(tenant, count)
    if (count === perTenant) full.add(tenant)
    if (chosen.push(run) === limit) break
  }
  return chosen
}

/** Runs without the label are those of one tenant. */
export function tenantOf({ labels }: Pick<RunSummary, 'labels'>): string {
  return Object.hasOwn(labels, 'tenant') ? `=${labels['tenant']}` : ''
}

const WAITING: ReadonlySet<string> = new Set<RunStatus>(['queued', 'interrupted'])

/** A log can begin with the state of a run. */
const DAMAGED: ReadonlySet<HarnessErrorCode> = new Set(['invalid_log', 'invalid_state'])
