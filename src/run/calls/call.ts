import { checkArguments } from '../../tools/boundary/arguments.js'
import type { CheckedArguments } from '../../tools/boundary/arguments.js'
import { noteRepairs } from '../../tools/boundary/call.js'
import { contentSourceOf } from '../../tools/content-source.js'
import { envelopeOf, renderEnvelope } from '../../tools/boundary/envelope.js'
import { failureOf } from '../../tools/boundary/failure.js'
import { invoke } from '../../tools/boundary/invoke.js'
import type { ToolOutcome } from '../../tools/outcome.js'
import type { ToolSpec } from '../../tools/spec.js'
import type { SuspendedCall } from '../../tools/suspension.js'
import type { FinishReason } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'
import { didYouMean } from '../../util/suggest.js'
import { settle } from '../../util/abort.js'
import type { ApprovalAnswer, DeclinedAnswer } from '../machine/answers.js'
import type { LeftRun } from '../machine/background-state.js'
import type { BatchCall } from '../machine/batch-call.js'
import { askAfterCall, askBeforeCall } from './call-hooks.js'
import type { EndedCall, ToldOfCall } from './call-hooks.js'
import { CallChildren } from '../children/children.js'
import type { RunContext } from '../core/context.js'
import type { Frozen } from '../core/frozen.js'
import type { LeftChild } from '../core/started-child.js'
import { answerOf, toolContext } from '../core/tool-context.js'
import { outcomeBy } from './verdict.js'

/**
 * Performs one call of a batch, from its start to its kept outcome, or to what it asks of people. Gives the runs that it
 * has left behind, which are to begin now. Rejects only when the run cannot go on; the call has its kept outcome then too,
 * if the log can keep it.
 */
export async function performCall(
  context: RunContext,
  frozen: Frozen,
  call: BatchCall,
  { toolIndex, checked }: { readonly toolIndex: number; readonly checked: CheckedArguments | undefined },
): Promise<readonly LeftChild[]> {
  const startedAt = performance.now()
  const { callId, name: toolName } = call
  const said = declineOf(call) ?? outcomeBy(call.verdict, frozen.tools.get(toolName), toolName)
  if (said !== null) {
    await completeUnrun(context, call, toolIndex, said)
    return []
  }
  await context.emit('tool_call_started', { callId, toolName, toolIndex, arguments: call.arguments })
  const children = new CallChildren(context, frozen, call)
  const ended = (outcome: ToolOutcome): EndedCall => {
    const durationMs = Math.round((performance.now() - startedAt) * 1000) / 1000
    const childUsage = children.usage
    const readOnly = frozen.tools.get(toolName)?.annotations?.readOnly === true
    const told = envelopeOf(outcome)
    const how = { startedRuns: childUsage !== null, answered: call.answers.some((answer) => 'answer' in answer) }
    const source = contentSourceOf(frozen.tools.get(toolName), outcome, how)
    const beside = { ...(childUsage !== null && { childUsage }), ...(source !== undefined && { source }) }
    return { toolIndex, durationMs, outcome, told, readOnly, ...beside }
  }
  let left: readonly LeftChild[] = []
  try {
    const { background, ...outcome } = await outcomeOf(context, frozen, call, { toolIndex, checked, children })
    if (outcome.kind === 'suspended') {
      await suspend(context, call, outcome, children)
      return left
    }
    const end = { ...ended(outcome), ...(background !== undefined && { background }) }
    await complete(context, call, end, await askAfterCall(context, call, end))
    if (background !== undefined) left = children.left
    return left
  } catch (error) {
    const end = ended(failureOf(error))
    await complete(context, call, end, { output: renderEnvelope(end.told), envelope: end.told }).catch(() => undefined)
    throw error
  } finally {
    for (const child of children.left) if (!left.includes(child)) child.drop()
  }
}

/** Ends a call by what is known of it, without running it. */
export async function completeUnrun(
  context: RunContext,
  call: BatchCall,
  toolIndex: number,
  outcome: ToolOutcome,
): Promise<void> {
  const envelope = envelopeOf(outcome)
  const end = { toolIndex, durationMs: 0, outcome, told: envelope }
  await complete(context, call, end, { output: renderEnvelope(envelope), envelope })
}

async function complete(
  context: RunContext,
  call: BatchCall,
  { toolIndex, durationMs, outcome, childUsage, background, source, readOnly = false }: EndedCall,
  { output, envelope }: ToldOfCall,
): Promise<void> {
  const { callId, name: toolName } = call
  const parts = outcome.kind === 'succeeded' || outcome.kind === 'failed' ? outcome.parts : undefined
  const errorType = envelope.metadata['error_type']
  const told = { output, parts, ok: envelope.ok }
  const isWatched = context.state.rules.stall !== undefined
  const mark = isWatched ? (await import('./stall.js')).staleMark(context.state, call, told, readOnly) : {}
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
    ...(source !== undefined && { source }),
    ...(childUsage !== undefined && { childUsage }),
    ...(background !== undefined && { background }),
    ...mark,
  })
}

/** The call waits, for what its handler asks or for what its children do. */
async function suspend(
  context: RunContext,
  { callId, name: toolName, arguments: text }: BatchCall,
  { payload, answerSchema }: SuspendedCall,
  children: CallChildren,
): Promise<void> {
  const own = {
    kind: 'question',
    callId,
    toolName,
    arguments: text,
    payload,
    answerSchema,
    path: [context.runId],
  } as const
  const items = children.waiting.length > 0 ? children.waiting : [own]
  await context.emit('approval_requested', { items, callId, children: children.states })
}

async function outcomeOf(
  context: RunContext,
  frozen: Frozen,
  call: BatchCall,
  how: { readonly toolIndex: number; readonly checked: CheckedArguments | undefined; readonly children: CallChildren },
): Promise<Performed> {
  const approval = approvalOf(call)
  if (approval !== null && !approval.approved) return { kind: 'rejected', reason: approval.reason ?? null }
  if (context.signal.aborted) return CANCELLED
  const spec = frozen.tools.get(call.name)
  const decided = await askBeforeCall(context, call, how.toolIndex, spec)
  if (decided.cancel !== null) return cancelledByHook(decided.cancel)
  if (spec === undefined) return unknownTool(call.name, frozen.tools.keys())
  const replaced = decided.args ?? approval?.editedArguments
  const checked =
    replaced === undefined
      ? (how.checked ?? (await checkCall(spec, call.arguments, finishReasonOf(context))))
      : await checkArguments(spec, JSON.stringify(replaced))
  if (!checked.ok) return checked.outcome
  const refused = replaced === undefined ? await refusedFlow(context, frozen, spec, checked.text) : null
  if (refused !== null) return refused
  const outcome = await run(context, frozen, { spec, call, checked, children: how.children })
  return approval?.editedArguments === undefined ? outcome : noteEdit(outcome, approval.editedArguments)
}

/** What refuses a call that would carry untrusted content where nothing allows it; null: nothing does. */
async function refusedFlow(
  context: RunContext,
  { provenance }: Frozen,
  spec: ToolSpec,
  argumentsText: string,
): Promise<ToolOutcome | null> {
  if (provenance?.options.otherwise !== 'deny') return null
  const { flowsInto, refusedBy } = await import('../provenance/flows.js')
  const flows = flowsInto(provenance, context.state.transcript, { spec, argumentsText })
  return flows.length === 0 ? null : refusedBy(flows)
}

/** The outcome of a call whose question a person declined to answer. */
function declineOf({ callId, answers }: BatchCall): ToolOutcome | null {
  const declined = answers.find((answer): answer is DeclinedAnswer => answer.callId === callId && 'declined' in answer)
  if (declined === undefined) return null
  const reason = declined.reason === undefined ? '' : `\nReason: ${declined.reason}`
  const content = `The tool asked a question, and the person declined to answer it.${reason}`
  return { kind: 'failed', errorType: 'Declined', content, retry: false }
}

/** A person's decision on the call itself. */
function approvalOf({ callId, answers }: BatchCall): ApprovalAnswer | null {
  return answers.find((answer): answer is ApprovalAnswer => answer.callId === callId && 'approved' in answer) ?? null
}

/** The model is told that a person changed what it had asked for. */
function noteEdit(outcome: Performed, args: JsonObject): Performed {
  if (outcome.kind === 'suspended' || outcome.kind === 'rejected') return outcome
  return { ...outcome, metadata: { ...outcome.metadata, edited_arguments: args } }
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

export function finishReasonOf({ state }: RunContext): FinishReason {
  const last = state.transcript.at(-1)
  return last?.role === 'assistant' ? last.finishReason : 'other'
}

/** What a handler came to, and the runs that it left behind, where it succeeded. Plain JSON. */
type Performed = (ToolOutcome | SuspendedCall) & { readonly background?: readonly LeftRun[] }

interface Running {
  readonly spec: ToolSpec
  readonly call: BatchCall
  readonly checked: CheckedArguments & { ok: true }
  readonly children: CallChildren
}

async function run(context: RunContext, frozen: Frozen, running: Running): Promise<Performed> {
  // The run may have been aborted while the hooks were asked: nothing starts behind that.
  if (context.signal.aborted) return CANCELLED
  const { spec, call, checked, children } = running
  const { timeoutMs } = spec
  let ended = false
  const work = async (signal: AbortSignal): Promise<Performed> => {
    const life = { signal, hasEnded: () => ended, answer: answerOf(call), spawn: children.spawn.bind(children) }
    const handle = () => invoke(spec, checked.value, toolContext(context, frozen, call, life))
    const handled = await within(context, call, () => wrapped(context, running, signal, handle))
    const value = leaving(handled, running)
    // Where one of its runs waits the call does, once the others have come to a pause or an end.
    if (children.waiting.length > 0) await children.settled()
    return value
  }
  const { stopped, value } = await settle(work, { abort: context.abort, timeoutMs })
  ended = true
  await children.end()
  if (stopped === null && children.waiting.length > 0) return WAITS_FOR_CHILDREN
  if (stopped === null && value?.kind === 'suspended') return value
  if (value !== undefined && value.kind !== 'suspended' && (stopped === null || value.kind === 'succeeded')) {
    const { background, ...outcome } = value
    return { ...noteRepairs(outcome, checked.repairs), ...(background !== undefined && { background }) }
  }
  if (stopped === 'timed_out') return timedOut(spec.name, timeoutMs ?? 0)
  return CANCELLED
}

/** With what a handler that succeeded leaves behind: what it takes to enter it again for that. */
function leaving(handled: ToolOutcome | SuspendedCall, { call, checked, children }: Running): Performed {
  if (handled.kind !== 'succeeded' || children.left.length === 0) return handled
  const answer = answerOf(call)
  const entered = { arguments: checked.text, ...(answer !== undefined && { answer }) }
  const background = children.left.map(({ key, childRunId, agent, task }) => {
    return { key, childRunId, agent, task, ...entered }
  })
  return { ...handled, background }
}

async function wrapped(
  context: RunContext,
  { spec, call, checked }: Running,
  signal: AbortSignal,
  work: () => Promise<ToolOutcome | SuspendedCall>,
): Promise<ToolOutcome | SuspendedCall> {
  const { runId, parent, metadata, hooks, hookFailed } = context
  if (hooks.wraps.tool.length === 0) return work()
  const about = { runId, agentName: parent?.agentName ?? null, metadata, callId: call.callId, tool: spec }
  const { wrappedCall } = await import('../hooks/wraps.js')
  return wrappedCall(hooks.wraps, hookFailed, { ...about, args: checked.value, signal }, work)
}

function within<T>({ tracer }: RunContext, { callId }: BatchCall, work: () => T): T {
  return tracer === null ? work() : tracer.within({ kind: 'tool', callId }, work)
}

/** What people are asked is with the children. */
const WAITS_FOR_CHILDREN: SuspendedCall = { kind: 'suspended', payload: null, answerSchema: {} }

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
