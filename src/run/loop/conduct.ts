import { HarnessError, cancelledError, messageOf } from '../../contracts/errors.js'
import type { Model } from '../../contracts/model.js'
import { withText } from '../../contracts/notices.js'
import type { HarnessResult } from '../../contracts/result.js'
import { textOf } from '../../contracts/entry.js'
import type { ContentPart } from '../../contracts/entry.js'
import { checkAnswers } from '../resume/answer-check.js'
import type { Answer } from '../machine/answers.js'
import { checkConfig } from '../resume/config-check.js'
import type { RunContext } from '../core/context.js'
import { TurnDriver } from './driver.js'
import type { Ending } from './driver.js'
import { RunStopped, failureError, stopReasonOf, toHarnessError } from '../core/failure.js'
import type { DurablePayloads } from '../machine/events.js'
import { freeze } from './freeze.js'
import type { Frozen } from '../core/frozen.js'
import type { HookContext, HookEvent } from '../hooks/hooks.js'
import { contentOf } from '../stream/input.js'
import type { InputMessage } from '../stream/input.js'
import { requestBreach } from '../machine/limits.js'
import type { Breach } from '../machine/limits.js'
import { LiveEffects } from './live-effects.js'
import type { LoadedRun } from '../core/load.js'
import type { FreshOpening, GoOnOpening, Opening, RunPlan } from '../core/plan.js'
import { reportOf, resultOf, stateDocument } from '../core/result.js'
import type { RunRules } from '../machine/rules.js'
import { spendingOf } from './spending.js'
import type { Ended, RunState } from '../machine/state.js'
import { belowAnother, pendingOf } from '../resume/stored-state.js'
import { loadTracing, openTrace } from '../extension/tracing.js'
import type { TracedRun } from '../extension/tracing.js'

/** One run from its first event to its last: exactly one of `run_completed` and `run_failed`. */
export async function conduct<Output>(context: RunContext, plan: RunPlan): Promise<HarnessResult<Output>> {
  try {
    await loadTracing(plan.tracing)
    await context.claim(plan.opening.kind === 'fresh')
    const found = plan.opening.kind === 'go_on' ? await plan.opening.load() : null
    // What a run below another had spent is not in that one's usage yet.
    context.outerPurse?.charge(Math.round((found?.state.usage.costUsd ?? 0) * 1_000_000))
    const answers = answersFor(plan.opening, found)
    const stored = found === null ? null : await storedEnding<Output>(context, plan, found, answers)
    if (stored !== null) return stored
    return await complete<Output>(context, await perform(context, plan, found, answers))
  } catch (thrown) {
    throw await fail(context, thrown)
  } finally {
    context.abort.release()
    await context.release()
  }
}

/** Those that the run has not had before: a call that was interrupted gives its children their answers again. */
function answersFor(opening: Opening, found: LoadedRun | null): readonly Answer[] {
  if (opening.kind === 'fresh' || found === null) return []
  return opening.answers.filter(({ callId }) => found.answered?.includes(callId) !== true)
}

/** How a run ended that is not to go on: one that has ended, or that waits for people who have not answered. */
async function storedEnding<Output>(
  context: RunContext,
  plan: RunPlan,
  { state, responses, last }: LoadedRun,
  answers: readonly Answer[],
): Promise<HarnessResult<Output> | null> {
  const isOver = last === null || last.kind === 'run_completed' || last.kind === 'run_failed'
  const { phase } = state
  const pending = pendingOf(state)
  if (!isOver || (phase.at !== 'ended' && (pending.length === 0 || answers.length > 0))) return null
  if (context.parent === null && last !== null) context.tellStored(last)
  if (phase.at === 'ended' && phase.error !== undefined) {
    const { stopReason, error } = phase
    const run = reportOf(state, stopReason, responses, context.signingKey)
    throw new HarnessError(error.code, error.message, { ...error, run })
  }
  const text = lastTextOf(state)
  const output = phase.at === 'ended' ? await answerOf(plan, phase, text) : null
  return resultOf(state, { text, output: output as Output, pending }, responses, context.signingKey)
}

async function answerOf(plan: RunPlan, { output }: Ended, text: string): Promise<unknown> {
  return output === undefined ? text : plan.readAnswer(output)
}

function lastTextOf({ transcript }: RunState): string {
  const last = transcript.findLast((entry) => entry.role === 'assistant')
  return last === undefined ? '' : textOf(last.parts)
}

async function perform(
  context: RunContext,
  plan: RunPlan,
  found: LoadedRun | null,
  answers: readonly Answer[],
): Promise<Ending> {
  const { opening } = plan
  if (found !== null && opening.kind === 'go_on') return goOn(context, plan, { ...opening, answers }, found)
  const fresh = opening.kind === 'fresh' ? opening : await opening.otherwise?.()
  if (fresh !== undefined) return begin(context, plan, fresh)
  throw new HarnessError('run_not_found', `The log knows no run \`${context.runId}\`.`)
}

async function begin(context: RunContext, plan: RunPlan, { prompt, history }: FreshOpening): Promise<Ending> {
  context.trace = openTrace(plan.tracing, () => tracedRun(context, plan, null))
  const model = await plan.loadModel()
  const output = plan.outputFor(model)
  const rules = plan.rulesFor(output)
  context.spending = await spendingOf(context, plan, model, rules, null)
  await context.emit('run_started', { begun: 'fresh', prompt, ...startedBy(context, plan, model, rules), history })
  return timed(context, rules, async () => {
    await tellStart(context, plan, prompt, rules)
    const content = await effectivePrompt(context, prompt)
    return drive(context, await freeze(context.signal, plan, model, output, rules), content)
  })
}

/** Goes on where the run stands. All that can be refused is refused before its first event. */
async function goOn(context: RunContext, plan: RunPlan, opening: GoOnOpening, found: LoadedRun): Promise<Ending> {
  const { state, responses } = found
  const { answers } = opening
  if (context.parent === null && state.parent !== null) throw belowAnother(state.runId, state.parent)
  const model = await plan.loadModel()
  const output = plan.outputFor(model)
  const rules = plan.rulesFor(output)
  context.spending = await spendingOf(context, plan, model, rules, state)
  const frozen = await freeze(context.signal, plan, model, output, rules)
  checkConfig(state, frozen, opening.configPolicy)
  context.configPolicy = opening.configPolicy
  if (context.parent === null) await checkAnswers(state, answers, frozen.tools)
  if (answers.length > 0) checkBudget(context, found, rules)
  // Made before the run takes the state over and goes on with it.
  const before = found.isLogged ? {} : { state: stateDocument(state, responses) }
  context.adopt(state, responses, opening.metadata)
  context.trace = openTrace(plan.tracing, () => tracedRun(context, plan, state))
  const started = {
    begun: opening.begun,
    prompt: null,
    ...startedBy(context, plan, model, rules),
    history: [],
    ...before,
  } as const
  await context.emit('run_started', started)
  return timed(context, rules, async () => {
    await tellStart(context, plan, null, rules)
    await takeAnswers(context, answers)
    const content = state.phase.at === 'opening' ? await effectivePrompt(context, state.prompt) : []
    return drive(context, frozen, content)
  })
}

async function drive(context: RunContext, frozen: Frozen, content: readonly ContentPart[]): Promise<Ending> {
  const { recording } = context
  const effects =
    recording === null
      ? new LiveEffects(context, frozen)
      : new (await import('../replay/recorded-effects.js')).RecordedEffects(context, frozen, recording)
  return new TurnDriver(context, frozen, effects, content).drive()
}

/** No call is run whose results could not be sent any more (H-12). */
function checkBudget(context: RunContext, { state, responses }: LoadedRun, rules: RunRules): void {
  const breach = state.phase.at === 'batch' ? requestBreach(rules, state.usage) : undefined
  if (breach === undefined) return
  const { error } = failureError({ kind: 'limit', breach })
  const run = reportOf(state, 'limit_reached', responses, context.signingKey)
  throw new HarnessError(error.code, `${error.message} The run stays paused.`, { run })
}

/** Kept together, so that a crash cannot lose some of them. */
async function takeAnswers(context: RunContext, answers: readonly Answer[]): Promise<void> {
  if (answers.length === 0) return
  const resumed = context.emit('approval_resumed', { decisions: answers })
  await Promise.all([
    resumed,
    ...answers.map((answer) => context.emit('answer_received', { callId: answer.callId, answer })),
  ])
}

async function timed(context: RunContext, rules: RunRules, work: () => Promise<Ending>): Promise<Ending> {
  // A recording knows when the time was up.
  const timer = stopAfter(context, context.recording === null ? rules.limits.timeMs : null)
  try {
    context.signal.throwIfAborted()
    return await work()
  } finally {
    clearTimeout(timer)
  }
}

type Started = Omit<DurablePayloads['run_started'], 'begun' | 'prompt' | 'history' | 'state'>

/** `state` is what a run goes on from. */
function tracedRun(
  { runId, parent, metadata, clock }: RunContext,
  { root }: RunPlan,
  state: RunState | null,
): TracedRun {
  const { runId: parentRunId = null, callId: parentToolCallId = null, agentName = null } = parent ?? {}
  const earlier = { resumed: state !== null, traceparent: state?.traceparent ?? null }
  return { runId, parentRunId, parentToolCallId, agentName, metadata, root, at: clock.iso(), ...earlier }
}

function startedBy(context: RunContext, { root }: RunPlan, { provider, id }: Model, rules: RunRules): Started {
  const { metadata, trace } = context
  const { modelRequests: maxModelRequests, toolCalls: maxToolCalls } = rules.limits
  const traceparent = trace?.traceparent ?? null
  return {
    ...{ root, provider, model: id, maxModelRequests, maxToolCalls, metadata, rules },
    ...(traceparent !== null && { traceparent }),
  }
}

function stopAfter(context: RunContext, limit: number | null): NodeJS.Timeout | undefined {
  if (limit === null) return undefined
  return setTimeout(() => {
    context.abort.abort(new RunStopped({ kind: 'limit', breach: { kind: 'time_ms', limit, count: limit } }))
  }, limit)
}

async function tellStart(
  context: RunContext,
  { root }: RunPlan,
  prompt: InputMessage | null,
  { limits }: RunRules,
): Promise<void> {
  if (!context.hooks.has('run_start')) return
  const { modelRequests: maxModelRequests, toolCalls: maxToolCalls } = limits
  const asked = {
    ...context.hookBase('run_start'),
    prompt: prompt ?? '',
    root,
    maxModelRequests,
    maxToolCalls,
  } as const
  await context.hooks.ask(asked, context, (same) => same)
}

/** The prompt with what the hooks put behind it (spec §2.2). */
async function effectivePrompt(context: RunContext, prompt: InputMessage): Promise<readonly ContentPart[]> {
  const { hooks } = context
  if (!hooks.has('user_prompt_submit')) return contentOf(prompt)
  const added: string[] = []
  let cancel: string | true | undefined
  const asked: HookContext<'user_prompt_submit'> = { ...context.hookBase('user_prompt_submit'), prompt }
  await hooks.ask(asked, context, (same, answer) => {
    added.push(...(typeof answer.context === 'string' ? [answer.context] : (answer.context ?? [])))
    cancel = answer.cancel
    return cancel === undefined ? same : null
  })
  if (cancel !== undefined) throw blockedByHook(cancel)
  if (added.length === 0) return contentOf(prompt)
  return withText(contentOf(prompt), `<hook_context>\n${added.join('\n\n')}\n</hook_context>`)
}

function blockedByHook(reason: string | true): HarnessError {
  const why = reason === true || reason === '' ? 'unspecified' : reason
  return new HarnessError('cancelled_by_hook', `run blocked by hook: ${why}`)
}

async function complete<Output>(context: RunContext, ending: Ending): Promise<HarnessResult<Output>> {
  const found = (): HarnessResult<Output> =>
    resultOf(context.state, ending as Ending & { output: Output }, context.responses, context.signingKey)
  context.replayGiven()
  const seen = found()
  await tellEnd(context, { result: seen, error: null, stopReason: seen.stopReason })
  // What the hooks did belongs to the run too.
  const result = context.state.usage === seen.usage ? seen : found()
  await context.emit('run_completed', { result })
  return result
}

/**
 * Ends the run in an error: told to the hooks, kept in the log, told to the stream, and then the caller's. What ended the
 * run stays its error, also when a strict hook fails on top of it.
 */
async function fail(context: RunContext, thrown: unknown): Promise<HarnessError> {
  const { error, limit } = errorOf(context, thrown)
  const stopReason = stopReasonOf(error.code)
  if (context.hadEnded) return error
  await context.background?.end().catch(() => undefined)
  context.replayGiven()
  if (limit !== null) await passingOver(context, 'limit_reached', tellLimit(context, limit))
  await passingOver(context, 'run_end', tellEnd(context, { result: null, error, stopReason }))
  await context.emitFailure(error, stopReason)
  return toHarnessError(error, context.report(stopReason))
}

/** What ended the run: the caller's wish, what the run aborted itself for, or else what was thrown. */
function errorOf({ abort, signal }: RunContext, thrown: unknown): ReturnType<typeof failureError> {
  if (abort.byCaller) return { error: cancelledError(signal), limit: null }
  const cause: unknown = signal.aborted ? signal.reason : thrown
  return cause instanceof RunStopped
    ? failureError(cause.failure)
    : { error: toHarnessError(cause, undefined), limit: null }
}

/** The run has failed already: a strict hook that fails now is told like any other. */
async function passingOver(context: RunContext, event: HookEvent, asked: Promise<void>): Promise<void> {
  try {
    await asked
  } catch (failed) {
    const cause = failed instanceof HarnessError && failed.code === 'hook_failed' ? failed.cause : failed
    await context.hookFailed(event, messageOf(cause)).catch(() => undefined)
  }
}

async function tellLimit(context: RunContext, { kind, limit, count }: Breach): Promise<void> {
  if (!context.hooks.has('limit_reached')) return
  const asked = {
    ...context.hookBase('limit_reached'),
    limitKind: kind,
    limitValue: limit,
    currentCount: count,
  } as const
  await context.hooks.ask(asked, context, (same) => same)
}

/** The `run_end` hooks are asked once, however the run ends. */
async function tellEnd(
  context: RunContext,
  end: Pick<HookContext<'run_end'>, 'result' | 'error' | 'stopReason'>,
): Promise<void> {
  if (context.endTold || !context.hasBegun) return
  context.endTold = true
  if (!context.hooks.has('run_end')) return
  const asked = { ...context.hookBase('run_end'), ...end, usage: context.state.usage }
  await context.hooks.ask(asked, context, (same) => same)
}
