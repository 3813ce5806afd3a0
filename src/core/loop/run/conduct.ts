import { HarnessError } from '#contracts/errors.js'
import type { HarnessResult } from '#contracts/result.js'
import type { Answer } from '../../state/answers.js'
import type { RunContext } from '../run-context.js'
import { RunSetup } from '../run-plan.js'
import type { FreshOpening, LoadedRun, Opening, RunPlan } from '../run-plan.js'
import { continueRun, promptOf, storedEnding } from './continue-run.js'
import type { RunState } from '../../state/state.js'
import type { Ending } from '../turn/turn-driver.js'
import { RunEnd } from './run-end.js'
import { addedByHooks, askStart, drive, prepare, startedBy, stopAfter, tracedRun } from './start-run.js'
import type { Conducted } from './start-run.js'

/** One run from its first event to its last: exactly one of `run_completed` and `run_failed`. */
export async function conduct<Output>(context: RunContext, plan: RunPlan): Promise<HarnessResult<Output>> {
  const end = new RunEnd(context)
  const { opening } = plan
  const timer = stopAfter(context, plan.rules.limits.timeMs)
  try {
    await context.tracer?.load()
    const read = await readEnding<Output>(context, plan)
    if (read !== null) return read
    await context.claim(opening.kind === 'fresh')
    const found = opening.kind === 'go_on' ? await context.fromLog(opening.load()) : null
    // The cost of a child so far is not in its parent's usage yet.
    context.outerMoney?.chargeEarlier(Math.round((found?.state.usage.costUsd ?? 0) * 1_000_000))
    const answers = newAnswers(opening, found)
    const stored = found === null ? null : await storedEnding<Output>(context, plan, { found, answers })
    if (stored !== null) return stored
    return await end.complete<Output>(await perform({ context, plan, end }, found, answers))
  } catch (thrown) {
    throw await end.fail(thrown)
  } finally {
    clearTimeout(timer)
    context.abort.release()
    await context.release()
  }
}

/** To recover or retry a run that has ended or is waiting is to read it: no claim, so that answers can arrive meanwhile. */
async function readEnding<Output>(context: RunContext, plan: RunPlan): Promise<HarnessResult<Output> | null> {
  const { opening } = plan
  if (context.parent !== null || opening.kind === 'fresh') return null
  if (opening.begun !== 'recovered' && opening.begun !== 'retried') return null
  const found = await context.fromLog(opening.load())
  return found === null ? null : storedEnding<Output>(context, plan, { found, answers: [] })
}

/** The answers that the run has not had before: an interrupted call gives its children their answers again. */
function newAnswers(opening: Opening, found: LoadedRun | null): readonly Answer[] {
  if (opening.kind === 'fresh' || found === null) return []
  return opening.answers.filter(({ callId }) => found.answered?.includes(callId) !== true)
}

async function perform(run: Conducted, found: LoadedRun | null, answers: readonly Answer[]): Promise<Ending> {
  const { opening } = run.plan
  if (found?.state.queued === true && opening.kind === 'go_on') {
    const { state } = found
    run.context.begins(opening.metadata ?? state.metadata)
    return begin(run, { kind: 'fresh', prompt: promptOf(state), history: withoutHistory }, state)
  }
  if (found !== null && opening.kind === 'go_on') {
    // Only a run that has ended is put back to its last position; a child run that has had its answers continues as after a crash.
    const isGoingOn = opening.begun === 'retried' && found.state.phase.at !== 'ended'
    const entered = isGoingOn || (run.context.parent !== null && answers.length === 0) ? 'recovered' : opening.begun
    return continueRun(run, { ...opening, begun: found.isReopened === true ? 'retried' : entered, answers }, found)
  }
  const fresh = opening.kind === 'fresh' ? opening : await opening.otherwise?.()
  if (fresh !== undefined) return begin(run, fresh)
  throw new HarnessError('run_not_found', `The log knows no run \`${run.context.runId}\`.`)
}

/** A run that waited has no conversation before it. */
const withoutHistory: FreshOpening['history'] = () =>
  Promise.resolve({ start: { history: [] }, conversation: { entries: [] } })

/** Begins a run with a prompt; `queued`: the state of one that waited. If it cannot begin, that goes on waiting. */
async function begin(
  run: Conducted,
  { prompt: given, history }: FreshOpening,
  queued: RunState | null = null,
): Promise<Ending> {
  const { context, plan } = run
  const { conversation, start } = await context.fromLog(history())
  context.prepareDeps(context.metadata)
  context.tracer?.open(() => tracedRun(context, plan, null))
  await context.openExtensions(queued, { begun: 'fresh', metadata: context.metadata })
  // One that waited was asked about before.
  const prompt = await context.admit(given, 'prompt', queued !== null)
  const prepared = await prepare(run, null)
  context.inherit(conversation)
  const labels = Object.keys(context.labels).length > 0 && { labels: context.labels }
  if (queued !== null) context.adopt(queued, [], context.metadata)
  await context.emit('run_started', { begun: 'fresh', prompt, ...startedBy(run, prepared), ...labels, ...start })
  context.signal.throwIfAborted()
  await askStart(run, prompt, prepared.rules)
  const addition = await addedByHooks(context, prompt)
  return drive(run, await RunSetup.open(context, plan, prepared, context.metadata), addition)
}
