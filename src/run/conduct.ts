import { HarnessError, cancelledError, messageOf } from '../errors.js'
import type { Model, ModelSettings } from '../model/contracts.js'
import { withText } from '../model/notices.js'
import type { OutputFormat } from '../output/format.js'
import type { HarnessResult } from '../report.js'
import type { ToolSpec } from '../tools/spec.js'
import type { ContentPart, TranscriptEntry } from '../transcript/entry.js'
import type { RunContext } from './context.js'
import { TurnDriver } from './driver.js'
import type { Ending } from './driver.js'
import { RunStopped, failureError, stopReasonOf, toHarnessError } from './failure.js'
import type { DurablePayloads } from './events.js'
import type { Frozen } from './frozen.js'
import type { HookContext, HookEvent } from './hooks.js'
import { contentOf } from './input.js'
import type { InputMessage, InputPort } from './input.js'
import type { Breach } from './limits.js'
import { resultOf } from './result.js'
import type { RunRules } from './rules.js'
import type { StepRunner } from './steps.js'

/** What a run is to do and with what. The parts that cost loading are loaded when the run comes to them. */
export interface RunPlan {
  /** Null when the run goes on from a state. */
  readonly prompt: InputMessage | null
  readonly history: readonly TranscriptEntry[]
  readonly root: string
  readonly settings: ModelSettings
  readonly steps: StepRunner
  readonly input: InputPort | null
  readonly deltas: boolean
  readonly sequential: boolean
  readonly loadModel: () => Promise<Model>
  readonly loadTools: () => Promise<readonly ToolSpec[]>
  readonly instructionsFor: (tools: readonly ToolSpec[]) => string
  readonly outputFor: (model: Model) => OutputFormat | null
  readonly rulesFor: (output: OutputFormat | null) => RunRules
}

/** One run from its first event to its last: exactly one of `run_completed` and `run_failed`. */
export async function conduct<Output>(context: RunContext, plan: RunPlan): Promise<HarnessResult<Output>> {
  try {
    return await complete<Output>(context, await perform(context, plan))
  } catch (thrown) {
    throw await fail(context, thrown)
  } finally {
    context.abort.release()
  }
}

async function perform(context: RunContext, plan: RunPlan): Promise<Ending> {
  const model = await plan.loadModel()
  const output = plan.outputFor(model)
  const rules = plan.rulesFor(output)
  await context.emit('run_started', startedBy(context, plan, model, rules))
  const timer = stopAfter(context, rules.limits.timeMs)
  try {
    context.signal.throwIfAborted()
    await tellStart(context, plan, rules)
    const prompt = plan.prompt === null ? [] : await effectivePrompt(context, plan.prompt)
    const frozen = await freeze(plan, model, output)
    return await new TurnDriver(context, frozen, prompt).drive()
  } finally {
    clearTimeout(timer)
  }
}

function startedBy(
  { metadata }: RunContext,
  { prompt, root, history }: RunPlan,
  { provider, id }: Model,
  rules: RunRules,
): DurablePayloads['run_started'] {
  const { modelRequests: maxModelRequests, toolCalls: maxToolCalls } = rules.limits
  return { prompt, root, provider, model: id, maxModelRequests, maxToolCalls, metadata, rules, history }
}

function stopAfter(context: RunContext, limit: number | null): NodeJS.Timeout | undefined {
  if (limit === null) return undefined
  return setTimeout(() => {
    context.abort.abort(new RunStopped({ kind: 'limit', breach: { kind: 'time_ms', limit, count: limit } }))
  }, limit)
}

async function tellStart(context: RunContext, { prompt, root }: RunPlan, { limits }: RunRules): Promise<void> {
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

async function freeze(plan: RunPlan, model: Model, output: OutputFormat | null): Promise<Frozen> {
  const { settings, steps, input, deltas, sequential, root } = plan
  const specs = await plan.loadTools()
  const definitions = specs.map(({ name, description, parameters }) => ({ name, description, parameters }))
  const constants = {
    instructions: joined([plan.instructionsFor(specs), output?.instructions ?? '']),
    tools: [...definitions, ...(output?.tool ? [output.tool] : [])],
    structuredOutput: output?.request ?? null,
    settings,
  }
  const tools = new Map(specs.map((spec) => [spec.name, spec]))
  return { model, session: model.openSession(), constants, tools, output, steps, input, deltas, sequential, root }
}

function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('\n\n')
}

async function complete<Output>(context: RunContext, ending: Ending): Promise<HarnessResult<Output>> {
  const result = resultOf<Output>(context.state, ending as Ending & { output: Output }, context.responses)
  await tellEnd(context, { result, error: null, stopReason: result.stopReason })
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
