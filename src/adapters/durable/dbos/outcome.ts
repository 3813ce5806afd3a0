import { setTimeout as delay } from 'node:timers/promises'
import { HarnessError } from '#contracts/errors.js'
import type { Harness } from '#harness/harness.js'
import type { HarnessResult } from '#contracts/result.js'
import type { LogStore } from '#core/log/log.js'
import { endingOf } from '../stretch.js'
import type { StretchEnding } from '../stretch.js'
import { isUnderWay } from './engine.js'
import type { DbosEngine } from './engine.js'
import type { EngineStretch } from './stretches.js'

/** How often the engine is asked for the end of a stretch, in ms. */
const POLL_MS = 500
/** How long to wait for a stretch that is moved to another version, in ms: it is cancelled for a moment. */
const MOVE_MS = 2000
/** How long to wait for the end of a cancelled run, in ms, before its result rejects without it. */
const CANCEL_MS = 15_000

interface OutcomeSource<Output> {
  readonly dbos: DbosEngine
  readonly log: LogStore
  readonly harness: () => Promise<Harness<Output>>
}

/** The outcome of a stretch that the engine has ended: the run's result or its error, from the log. */
export async function outcomeOf<Output>(
  stretch: EngineStretch,
  source: OutcomeSource<Output>,
): Promise<HarnessResult<Output>> {
  const { runId } = stretch
  const { log } = source
  const ending = await awaitEnding(stretch, source)
  if (ending?.kind === 'refused') throw new HarnessError(ending.code, ending.message)
  const seq = ending === null ? await endAfterCancel(stretch, log) : ending.seq
  return endingOf({ harness: await source.harness(), log }, runId, seq)
}

/** Null if the stretch was cancelled. */
async function awaitEnding<Output>(
  { workflowId, runId }: EngineStretch,
  { dbos, log }: OutcomeSource<Output>,
): Promise<StretchEnding | null> {
  for (let mayMove = true; ; mayMove = false) {
    try {
      return (await dbos.getResult(workflowId, { pollingIntervalMs: POLL_MS })) as StretchEnding
    } catch (cause) {
      const workflow = await dbos.getWorkflowStatus(workflowId)
      if (workflow !== null && isUnderWay(workflow)) continue
      if (workflow?.status !== 'CANCELLED') {
        const why = cause instanceof Error ? cause.message : String(cause)
        throw new HarnessError('error', `DBOS could not carry out run \`${runId}\`: ${why}`, { cause })
      }
      const status = (await log.inspect({ kind: 'run', id: runId }))?.status ?? 'interrupted'
      if (!mayMove || status !== 'interrupted') return null
      await delay(MOVE_MS)
    }
  }
}

/** The number of the event that ended a cancelled run. Rejects with `cancelled` if there is none. */
async function endAfterCancel({ runId, after }: EngineStretch, log: LogStore): Promise<number> {
  const until = Date.now() + CANCEL_MS
  for (;;) {
    const status = (await log.inspect({ kind: 'run', id: runId }))?.status
    const seq = status === 'running' ? null : await endAfter(log, runId, after)
    if (seq !== null) return seq
    if (status !== 'running' || Date.now() > until) throw cancelled(runId, status === undefined)
    await delay(POLL_MS)
  }
}

async function endAfter(log: LogStore, runId: string, after: number): Promise<number | null> {
  for await (const { kind, seq } of log.read({ kind: 'run', id: runId }, { after }))
    if (kind === 'run_completed' || kind === 'run_failed') return seq
  return null
}

function cancelled(runId: string, neverBegan: boolean): HarnessError {
  const when = neverBegan ? ' before it began' : ''
  return new HarnessError('cancelled', `Run \`${runId}\` was cancelled${when}.`)
}
