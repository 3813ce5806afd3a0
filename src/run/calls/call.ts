import type { CheckedArguments } from '../../tools/boundary/arguments.js'
import { failureOf, invoke, noteRepairs } from '../../tools/boundary/invoke.js'
import type { ToolOutcome } from '../../tools/outcome.js'
import type { ToolSpec } from '../../tools/spec.js'
import type { SuspendedCall } from '../../tools/ask.js'
import { settle } from '../../util/abort.js'
import { wrapped } from '../../util/wrapped.js'
import type { Work, Wrap } from '../../util/wrapped.js'
import { CallChildren } from '../children/children.js'
import type { LeftChild } from '../children/left-child.js'
import type { RunContext } from '../core/context.js'
import type { Frozen } from '../core/frozen.js'
import { answersOf, toolContext } from '../core/tool-context.js'
import { wrappedCall } from '../hooks/wraps.js'
import type { BatchCall } from '../machine/batch-call.js'
import { recordedDecision } from './admission.js'
import type { Admission } from './admission.js'
import { askAfterCall } from './call-hooks.js'
import { callEnd, complete, completeUnrun } from './complete.js'
import type { CallEnd, CallRun } from './complete.js'
import { CANCELLED, timedOut } from './refusals.js'
import { declineOf, outcomeBy } from './verdict.js'

type Handled = ToolOutcome | SuspendedCall

/** An entry of a handler. */
interface Entry {
  readonly call: BatchCall
  readonly spec: ToolSpec
  readonly checked: CheckedArguments & { readonly ok: true }
  readonly children: CallChildren
  readonly signal: AbortSignal
  readonly hasEnded: () => boolean
}

/** Performs the calls of one run. */
export interface Calls extends CallRun {
  /** Enters a handler, with everything that surrounds it. */
  readonly enter: Work<Entry, Handled>
  /** Begins the runs that a call has left to work beside its run. */
  readonly begin: (callId: string, left: readonly LeftChild[]) => void
  /** Calls of the batch that wait for a call that asks. */
  readonly holds: (call: BatchCall) => readonly string[]
}

/** What surrounds each call of a run, composed once. */
export function enteringOf(context: RunContext, frozen: Frozen): Work<Entry, Handled> {
  return wrapped<Entry, Handled>([...traced(context), ...middleware(context)], (entry) => {
    const { call, spec, checked, children, signal, hasEnded } = entry
    const life = { signal, hasEnded, answers: () => answersOf(call), spawn: children.spawn.bind(children) }
    return invoke(spec, checked.value, toolContext(context, frozen, { call, life }))
  })
}

function traced({ tracer }: RunContext): readonly Wrap<Entry, Handled>[] {
  if (tracer === null) return []
  return [(entry, next) => tracer.within({ kind: 'tool', callId: entry.call.callId }, () => next(entry))]
}

function middleware({ runId, parent, metadata, hooks, hookFailed }: RunContext): readonly Wrap<Entry, Handled>[] {
  if (hooks.wraps.tool.length === 0) return []
  return [
    (entry, next) => {
      const { call, spec, checked, signal } = entry
      const about = { runId, agentName: parent?.agentName ?? null, metadata, callId: call.callId, tool: spec }
      return wrappedCall(hooks.wraps, hookFailed, {
        call: { ...about, args: checked.value, signal },
        work: () => next(entry),
      })
    },
  ]
}

/**
 * Performs an admitted call, from its start to its stored outcome, or to what it asks of people. Rejects only if the run
 * cannot continue; the call has a stored outcome then too, if the log can store it.
 */
export async function performCall(calls: Calls, admission: Admission): Promise<void> {
  const startedAt = performance.now()
  const { context, frozen } = calls
  const { call, toolIndex, decision, spec } = admission
  const { callId, name: toolName } = call
  const known = declineOf(call) ?? outcomeBy(call.verdict, spec, toolName)
  if (known !== null) return completeUnrun(calls, call, { toolIndex, outcome: known })
  const by = decision !== null && { decision: recordedDecision(decision) }
  await context.emit('tool_call_started', { callId, toolName, toolIndex, arguments: call.arguments, ...by })
  const children = new CallChildren(context, frozen, { call })
  const entered = admission.checked?.text ?? call.arguments
  const ended = (outcome: ToolOutcome): CallEnd => {
    const durationMs = Math.round((performance.now() - startedAt) * 1000) / 1000
    return callEnd({ toolIndex, durationMs, outcome }, call, { spec, children, entered })
  }
  try {
    const outcome = admission.outcome ?? (await run(calls, admission, children))
    if (outcome.kind === 'suspended') {
      await suspend(calls, call, { suspended: outcome, children })
      return
    }
    const end = ended(outcome)
    await complete(calls, call, { ...end, shown: await askAfterCall(context, call, end) })
    if (end.about.background !== undefined) calls.begin(callId, children.takeLeft())
  } catch (error) {
    await complete(calls, call, ended(failureOf(error))).catch(() => undefined)
    throw error
  } finally {
    children.dropLeft()
  }
}

/** The call waits, for what its handler asks or for its children. */
async function suspend(
  { context, holds }: Calls,
  call: BatchCall,
  {
    suspended: { payload, answerSchema, key },
    children,
  }: { readonly suspended: SuspendedCall; readonly children: CallChildren },
): Promise<void> {
  const { callId, name: toolName, arguments: text } = call
  const path = [context.runId]
  const question = { payload, answerSchema, ...(key !== undefined && { key }) }
  const own = { kind: 'question', callId, toolName, arguments: text, ...question, path } as const
  const items = children.waiting.length > 0 ? children.waiting : [own]
  const held = holds(call)
  const later = held.length > 0 && { holds: held }
  await context.emit('approval_requested', { items, callId, children: children.states, ...later })
}

async function run(calls: Calls, admission: Admission, children: CallChildren): Promise<Handled> {
  const { spec, checked, call, edited } = admission
  // Nothing starts after an abort.
  if (calls.context.signal.aborted || spec === undefined || checked?.ok !== true) return CANCELLED
  const outcome = await settled(calls, { spec, checked, call, children })
  if (outcome.kind === 'suspended' || outcome.kind === 'rejected' || edited === null) return outcome
  // The model learns that a person changed its arguments.
  return { ...outcome, metadata: { ...outcome.metadata, edited_arguments: edited } }
}

async function settled({ context, enter }: Calls, entry: Omit<Entry, 'signal' | 'hasEnded'>): Promise<Handled> {
  const { spec, checked, children } = entry
  const { timeoutMs } = spec
  let ended = false
  const work = async (signal: AbortSignal): Promise<Handled> => {
    const handled = await enter({ signal, hasEnded: () => ended, ...entry })
    // If one of its runs waits, the call does, once the others have come to a pause or an end.
    if (children.waiting.length > 0) await children.settled()
    return handled
  }
  const { stopped, value } = await settle(work, { abort: context.abort, timeoutMs })
  ended = true
  await children.end()
  if (stopped === null && children.waiting.length > 0) return WAITS_FOR_CHILDREN
  if (stopped === null && value?.kind === 'suspended') return value
  if (value !== undefined && value.kind !== 'suspended' && (stopped === null || value.kind === 'succeeded'))
    return noteRepairs(value, checked.repairs)
  return stopped === 'timed_out' ? timedOut(spec.name, timeoutMs ?? 0) : CANCELLED
}

/** The questions are with the children. */
const WAITS_FOR_CHILDREN: SuspendedCall = { kind: 'suspended', payload: null, answerSchema: {} }
