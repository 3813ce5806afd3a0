import { checkArguments } from '../tools/arguments.js'
import type { CheckedArguments } from '../tools/arguments.js'
import { envelopeOf, renderEnvelope } from '../tools/envelope.js'
import { failureOf } from '../tools/failure.js'
import { invoke } from '../tools/invoke.js'
import type { ToolOutcome } from '../tools/outcome.js'
import type { ToolContext, ToolSpec } from '../tools/spec.js'
import type { FinishReason } from '../transcript/entry.js'
import { didYouMean } from '../util/suggest.js'
import { settle } from './abort.js'
import { isApproval } from './answers.js'
import { askAfterCall, askBeforeCall } from './call-hooks.js'
import type { EndedCall, ToldOfCall } from './call-hooks.js'
import type { RunContext } from './context.js'
import type { Frozen } from './frozen.js'
import type { BatchCall } from './state.js'
import { performStep } from './steps.js'

/**
 * Performs one call of a batch, from its start to its kept outcome. Rejects only when the run cannot go on; the call
 * has its kept outcome then too, if the log can keep it.
 */
export async function performCall(
  context: RunContext,
  frozen: Frozen,
  call: BatchCall,
  toolIndex: number,
): Promise<void> {
  const startedAt = performance.now()
  const { callId, name: toolName } = call
  if (!call.started) {
    await context.emit('tool_call_started', { callId, toolName, toolIndex, arguments: call.arguments })
  }
  const ended = (outcome: ToolOutcome): EndedCall => {
    const durationMs = Math.round((performance.now() - startedAt) * 1000) / 1000
    return { toolIndex, durationMs, outcome, told: envelopeOf(outcome) }
  }
  try {
    const end = ended(await outcomeOf(context, frozen, call, toolIndex))
    await complete(context, call, end, await askAfterCall(context, call, end))
  } catch (error) {
    const end = ended(failureOf(error))
    await complete(context, call, end, { output: renderEnvelope(end.told), envelope: end.told }).catch(() => undefined)
    throw error
  }
}

async function complete(
  context: RunContext,
  { callId, name: toolName }: BatchCall,
  { toolIndex, durationMs, outcome }: EndedCall,
  { output, envelope }: ToldOfCall,
): Promise<void> {
  const parts = outcome.kind === 'succeeded' || outcome.kind === 'failed' ? outcome.parts : undefined
  const errorType = envelope.metadata['error_type']
  await context.emit('tool_call_completed', {
    callId,
    toolName,
    toolIndex,
    ok: envelope.ok,
    cancelled: outcome.kind === 'cancelled',
    // Taken before the hooks: they can change what the model reads, not how the call is counted.
    retryKind: outcome.kind === 'failed' && outcome.retry ? outcome.errorType : null,
    errorType: typeof errorType === 'string' ? errorType : null,
    message: envelope.ok ? null : envelope.content,
    durationMs,
    output,
    ...(parts !== undefined && { parts }),
  })
}

async function outcomeOf(
  context: RunContext,
  frozen: Frozen,
  call: BatchCall,
  toolIndex: number,
): Promise<ToolOutcome> {
  const answer = call.answer !== null && isApproval(call.answer) ? call.answer : null
  if (answer !== null && !answer.approved) return { kind: 'rejected', reason: answer.reason ?? null }
  if (context.signal.aborted) return CANCELLED
  const spec = frozen.tools.get(call.name)
  const decided = await askBeforeCall(context, call, toolIndex, spec)
  if (decided.cancel !== null) return cancelledByHook(decided.cancel)
  if (spec === undefined) return unknownTool(call.name, frozen.tools.keys())
  const replaced = decided.args ?? answer?.editedArguments
  const checked =
    replaced === undefined
      ? (context.checked.get(call.callId) ?? (await checkCall(spec, call.arguments, finishReasonOf(context))))
      : await checkArguments(spec, JSON.stringify(replaced))
  if (!checked.ok) return checked.outcome
  return run(context, frozen, spec, call, checked)
}

/** The arguments of a call, checked; those of a reply that was cut off may be incomplete and are never used. */
export function checkCall(
  spec: ToolSpec,
  text: string,
  finishReason: FinishReason,
): CheckedArguments | Promise<CheckedArguments> {
  const cut = CUT_OFF[finishReason]
  if (cut === undefined) return checkArguments(spec, text)
  return {
    ok: false,
    text,
    outcome: {
      kind: 'failed',
      errorType: 'IncompleteCall',
      content: `\`${spec.name}\` was not run: ${cut}, so the call may be incomplete. Call it again, with less at once.`,
      retry: true,
    },
  }
}

const CUT_OFF: Partial<Record<FinishReason, string>> = {
  length: 'the reply was cut off at the output limit',
  refusal: 'the reply ended in a refusal',
  content_filter: "the provider's content filter stopped the reply",
  error: 'the reply ended in an error',
}

function finishReasonOf({ state }: RunContext): FinishReason {
  const last = state.transcript.at(-1)
  return last?.role === 'assistant' ? last.finishReason : 'other'
}

async function run(
  context: RunContext,
  frozen: Frozen,
  spec: ToolSpec,
  call: BatchCall,
  checked: CheckedArguments & { ok: true },
): Promise<ToolOutcome> {
  // The run may have been aborted while the hooks were asked: nothing starts behind that.
  if (context.signal.aborted) return CANCELLED
  const { timeoutMs } = spec
  let ended = false
  const work = (signal: AbortSignal): Promise<ToolOutcome> =>
    performStep(frozen.steps, `tool:${call.callId}`, () =>
      invoke(spec, checked.value, toolContext(context, frozen, call, { signal, hasEnded: () => ended })),
    )
  const { stopped, value } = await settle(work, { abort: context.abort, timeoutMs })
  ended = true
  if (value !== undefined && (stopped === null || value.kind === 'succeeded'))
    return noteRepairs(value, checked.repairs)
  if (stopped === 'timed_out') return timedOut(spec.name, timeoutMs ?? 0)
  return CANCELLED
}

interface CallLife {
  readonly signal: AbortSignal
  readonly hasEnded: () => boolean
}

function toolContext(
  context: RunContext,
  frozen: Frozen,
  call: BatchCall,
  { signal, hasEnded }: CallLife,
): ToolContext {
  const { runId, metadata } = context
  const { callId, name: toolName } = call
  return {
    runId,
    callId,
    toolName,
    root: frozen.root,
    idempotencyKey: `${runId}:${callId}`,
    metadata,
    signal,
    progress: (update) => {
      if (!signal.aborted && !hasEnded()) context.tell('tool_progress', { callId, toolName, update })
    },
  }
}

function noteRepairs(outcome: ToolOutcome, repairs: readonly string[]): ToolOutcome {
  if (repairs.length === 0 || outcome.kind === 'rejected') return outcome
  return { ...outcome, metadata: { ...outcome.metadata, repairs } }
}

const CANCELLED: ToolOutcome = { kind: 'cancelled', reason: 'The run was cancelled before this call had ended.' }

function timedOut(toolName: string, timeoutMs: number): ToolOutcome {
  const content = `\`${toolName}\` had not ended after ${timeoutMs} ms and was stopped. Its outcome is unknown.`
  return { kind: 'failed', errorType: 'Timeout', content, retry: false, metadata: { tool: toolName } }
}

function unknownTool(name: string, known: Iterable<string>): ToolOutcome {
  const names = [...known]
  const available = names.length === 0 ? ' There are no tools.' : ` Available: ${names.slice(0, 40).join(', ')}.`
  const content = `unknown tool ${name.slice(0, 100)}.${didYouMean(name, names)}${available}`
  return { kind: 'failed', errorType: 'NotFound', content, retry: false, metadata: { tool: name.slice(0, 100) } }
}

function cancelledByHook(reason: string | true): ToolOutcome {
  const why = reason === true || reason === '' ? 'unspecified' : reason
  return {
    kind: 'cancelled',
    reason: `Tool execution blocked by hook: ${why}`,
    metadata: { error_type: 'ToolCallCancelled' },
  }
}
