import { HarnessError } from '../../contracts/errors.js'
import type { Model } from '../../contracts/model.js'
import type { OutputFormat } from '../../output/format.js'
import type { RunContext } from '../core/context.js'
import type { Effects } from '../core/effects.js'
import { RunStopped } from '../core/failure.js'
import type { Frozen } from '../core/frozen.js'
import type { RunPlan } from '../core/plan.js'
import type { TracedRun } from '../extension/tracing.js'
import { FORMAT_VERSION } from '../machine/events.js'
import type { DurablePayloads } from '../machine/events.js'
import type { RunRules } from '../machine/rules.js'
import type { RunState } from '../machine/state.js'
import type { InputMessage } from '../stream/input.js'
import { TurnDriver } from './driver.js'
import type { Ending } from './driver.js'
import type { RunEnd } from './end.js'
import { LiveEffects } from './live-effects.js'
import { RecordedEffects } from '../replay/recorded-effects.js'
import { openMoney } from './spending.js'
import type { RunMoney } from './spending.js'

/** A run, its plan, and its end. */
export interface Conducted {
  readonly context: RunContext
  readonly plan: RunPlan
  readonly end: RunEnd
}

/** Known before a run's first event. */
export interface Prepared {
  readonly model: Model
  readonly output: OutputFormat | null
  readonly rules: RunRules
  readonly money: RunMoney
}

/** `state` is the state that the run continues from; null for a new run. */
export async function prepare({ context, plan }: Conducted, state: RunState | null): Promise<Prepared> {
  const model = await plan.loadModel()
  const output = plan.outputFor(model)
  const rules = plan.rulesFor(output)
  return { model, output, rules, money: await openMoney(context, plan, { model, rules, state }) }
}

type Started = Omit<DurablePayloads['run_started'], 'begun' | 'prompt' | 'history' | 'view' | 'state'>

export function startedBy({ context, plan }: Conducted, { model, rules }: Prepared): Started {
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
export async function drive({ context, end }: Conducted, frozen: Frozen, promptAddition: string): Promise<Ending> {
  const { recording } = context
  const effects: Effects =
    recording === null ? new LiveEffects(context, frozen) : new RecordedEffects(context, frozen, recording)
  end.onFailure(() => effects.stop())
  return new TurnDriver(context, frozen, { effects, promptAddition }).drive()
}
