import { HarnessError } from '#contracts/errors.js'
import type { Model } from '../../model-session.js'
import type { OutputFormat } from '../../state/output-format.js'
import type { RunContext } from '../run-context.js'
import type { Effects } from '../effects.js'
import { RunStopped } from '../run-failure.js'
import type { PreparedRun, RunPlan, RunSetup } from '../run-plan.js'
import type { TracedRun } from '../../extension/run-tracer.js'
import { FORMAT_VERSION } from '../../state/events.js'
import type { DurablePayloads } from '../../state/events.js'
import type { RunRules } from '../../state/run-rules.js'
import type { RunState } from '../../state/state.js'
import type { InputMessage } from '../../stream/input.js'
import { TurnDriver } from '../turn/turn-driver.js'
import type { Ending } from '../turn/turn-driver.js'
import type { RunEnd } from './run-end.js'
import { LiveEffects } from '../turn/live-effects.js'

/** A run, its plan, and its end. */
export interface Conducted {
  readonly context: RunContext
  readonly plan: RunPlan
  readonly end: RunEnd
}

/** `state` is the state that the run continues from; null for a new run. */
export async function prepare({ context, plan }: Conducted, state: RunState | null): Promise<PreparedRun> {
  const model = await plan.host.loadModel(plan.model)
  const output = plan.inherited === null ? plan.answer.formatFor(model) : plan.inherited.output
  const rules = plan.recordedRules ?? {
    ...rulesOf(plan, output, model),
    ...(state?.rules.dry === true && { dry: true as const }),
  }
  const money = await plan.money.open({
    model,
    rules,
    spentUsd: state?.usage.costUsd ?? 0,
    outerMoney: context.outerMoney,
    isRecorded: context.recording !== null,
  })
  context.decideWith(plan.host.decider(context, { model, money }))
  return { model, output, rules, money }
}

function rulesOf({ rules, offers }: RunPlan, output: OutputFormat | null, { computed }: Model): RunRules {
  const retryBudgets = offers.own.flatMap(({ name, maxRetries }) =>
    maxRetries === undefined ? [] : [[name, maxRetries] as const],
  )
  return {
    ...rules,
    toolRetryBudgets: Object.fromEntries(retryBudgets),
    answersByTool: output?.mode === 'tool',
    ...(computed === true && { computed }),
    ...((output?.mode === 'native' || output?.mode === 'prompted') && { answersByJson: true as const }),
  }
}

type Started = Omit<DurablePayloads['run_started'], 'begun' | 'prompt' | 'history' | 'view' | 'state'>

export function startedBy({ context, plan }: Conducted, { model, rules }: PreparedRun): Started {
  const { metadata, tracer } = context
  const { modelRequests: maxModelRequests, toolCalls: maxToolCalls } = rules.limits
  const traceparent = tracer?.traceparent ?? null
  return {
    version: FORMAT_VERSION,
    ...{ root: plan.root, provider: model.provider, model: model.id, maxModelRequests, maxToolCalls, metadata, rules },
    ...(traceparent !== null && { traceparent }),
  }
}

/** `state` is the state that the run continues from; null for a new run. */
export function tracedRun(
  { runId, parent, metadata, clock }: RunContext,
  { root }: RunPlan,
  state: RunState | null,
): TracedRun {
  const { runId: parentRunId = null, callId: parentToolCallId = null, agentName = null } = parent ?? {}
  const earlier = { resumed: state !== null, traceparent: state?.traceparent ?? null }
  return { runId, parentRunId, parentToolCallId, agentName, metadata, root, at: clock.iso(), ...earlier }
}

/** Stops the run when its time is up. A recording knows when that was. */
export function stopAfter(context: RunContext, limit: number | null): NodeJS.Timeout | undefined {
  if (limit === null || context.recording !== null) return undefined
  return setTimeout(() => {
    context.abort.abort(new RunStopped({ kind: 'limit', breach: { kind: 'time_ms', limit, count: limit } }))
  }, limit)
}

/** Asks the `run_start` hooks. */
export async function askStart(
  { context, plan }: Conducted,
  prompt: InputMessage | null,
  { limits }: RunRules,
): Promise<void> {
  if (!context.hasHook('run_start')) return
  const { modelRequests: maxModelRequests, toolCalls: maxToolCalls } = limits
  await context.askHooks('run_start', { prompt: prompt ?? '', root: plan.root, maxModelRequests, maxToolCalls })
}

/** The text that the `user_prompt_submit` hooks add to the prompt; empty if they add none. */
export async function addedByHooks(context: RunContext, prompt: InputMessage): Promise<string> {
  if (!context.hasHook('user_prompt_submit')) return ''
  const added: string[] = []
  let cancel: string | true | undefined
  await context.askHooks('user_prompt_submit', { prompt }, (same, answer) => {
    added.push(...(typeof answer.context === 'string' ? [answer.context] : (answer.context ?? [])))
    cancel = answer.cancel
    return cancel === undefined ? same : null
  })
  if (cancel !== undefined) throw blockedByHook(cancel)
  return added.length === 0 ? '' : `<hook_context>\n${added.join('\n\n')}\n</hook_context>`
}

function blockedByHook(reason: string | true): HarnessError {
  const why = reason === true || reason === '' ? 'unspecified' : reason
  return new HarnessError('cancelled_by_hook', `run blocked by hook: ${why}`)
}

/** Drives the run to its answer or its pause. */
export async function drive({ context, end }: Conducted, setup: RunSetup, promptAddition: string): Promise<Ending> {
  const { recording } = context
  const effects: Effects =
    recording === null ? new LiveEffects(context, setup) : setup.plan.host.recordedEffects(context, setup, recording)
  end.onFailure(() => effects.stop())
  return new TurnDriver(context, setup, { effects, promptAddition }).drive().finally(() => setup.session.close?.())
}
