import { HarnessError } from '#contracts/errors.js'
import { digestOf } from '#core/log/run-summary.js'
import { storeFailure } from '#core/log/log.js'
import type { RunLog } from '#core/log/log.js'
import { nameOf, runRef } from '#core/log/ref.js'
import { FORMAT_VERSION } from '#core/state/events.js'
import type { DurablePayloads } from '#core/state/events.js'
import { mergedLabels } from '#core/state/labels.js'
import { queuedState } from '#core/state/state.js'

/** A run that is to wait. */
export interface QueuedRun extends Omit<DurablePayloads['run_queued'], 'version'> {
  readonly runId: string
  /** ISO 8601 in UTC. */
  readonly at: string
}

/** Stores a run that waits, as the first event of its log. Rejects with `run_exists` if there is one of that id. */
export async function queueRun(log: RunLog, { runId, at, labels = {}, ...run }: QueuedRun): Promise<void> {
  const origin = { parentRunId: null, parentToolCallId: null, agentName: null }
  const base = { kind: 'run_queued', runId, seq: 1, at, durable: true, ...origin } as const
  const some = Object.keys(labels).length > 0 && { labels: mergedLabels([labels]) }
  const event = { ...base, version: FORMAT_VERSION, ...run, ...some } as const
  try {
    await log.append(runRef(runId), [event], {
      get digest() {
        return digestOf(queuedState(event))
      },
    })
  } catch (thrown) {
    const failure = storeFailure(`store an event of ${nameOf(runRef(runId))}`, thrown)
    // Whoever begins it has claimed it.
    if (failure.code !== 'run_owned') throw failure
    throw new HarnessError('run_exists', `There is a run \`${runId}\` already.`, { cause: failure })
  }
}
