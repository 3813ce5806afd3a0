import { HarnessError, messageOf } from '#contracts/errors.js'
import { digestOf } from '#core/log/digest.js'
import type { RunDigest } from '#core/log/digest.js'
import type { LogStore } from '#core/log/log.js'
import { runRef } from '#core/log/ref.js'
import type { DurableEvent } from '#core/state/events.js'

/**
 * The digest of a run whose writer passed none, computed from its events; null if it has none. Rejects with
 * `invalid_log` if they do not begin with `run_started`, or cannot be those of a run.
 */
export async function foldRun(log: LogStore, runId: string): Promise<RunDigest | null> {
  // Writers pass digests: only a file log, and logs of other programs, need this.
  const { loadRun } = await import('#run/resume/load-run.js')
  try {
    const run = await loadRun(log, runId)
    return run === null ? null : digestOf(run.state)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    const message = `The log of run \`${runId}\` is damaged: ${messageOf(error)}`
    throw new HarnessError('invalid_log', message, { cause: error })
  }
}

/** The events of a run that stand alone. */
export async function* exportRun(log: LogStore, runId: string): AsyncGenerator<DurableEvent> {
  const { selfContained } = await import('#run/resume/self-contained.js')
  yield* selfContained(log, log.read(runRef(runId)))
}

/** Null in place of a log that is damaged, or that has been removed in the meantime. */
export async function unlessDamaged<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading
  } catch (error) {
    const isDamaged = error instanceof HarnessError && error.code === 'invalid_log'
    if (isDamaged || (error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
