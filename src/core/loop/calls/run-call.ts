import { savedAs } from '#contracts/entry.js'
import type { ContentSource } from '#contracts/entry.js'
import type { CheckedArguments } from '../../tools/boundary/check-arguments.js'
import { failureOf, invoke, noteRepairs } from '../../tools/boundary/invoke.js'
import { bound } from '../../tools/boundary/truncate-output.js'
import type { ToolOutcome, ToolSpec } from '../../tools/tool-spec.js'
import type { SuspendedCall } from '../../tools/ask.js'
import { settle } from '#util/abort.js'
import { wrapped } from '#util/wrapped.js'
import type { Work, Wrap } from '#util/wrapped.js'
import type { CallRuns } from '../child-run.js'
import type { LeftChild } from '../child-run.js'
import type { RunContext } from '../run-context.js'
import type { RunSetup } from '../run-plan.js'
import { answersOf, toolContext, toolSurroundings } from '../tool-context.js'
import { wrappedCall } from '../../extension/wraps.js'
import type { BatchCall } from '../../state/batch-call.js'
import { batchOf, recordedDecision, withOtherCalls } from './admission.js'
import type { Admission } from './admission.js'
import { askAfterCall } from './call-hooks.js'
import { callEnd, complete, completeUnrun, contentSourceOf } from './complete-call.js'
import type { CallEnd, CallRun } from './complete-call.js'
import { CANCELLED, outcomeByPerson, timedOut } from './call-outcomes.js'

type Handled = ToolOutcome | SuspendedCall

/** The runs that a call has started: null while there are none. */
interface Spawned {
  runs: CallRuns | null
}

/** An entry of a handler. */
interface Entry {
  readonly call: BatchCall
  readonly spec: ToolSpec
  readonly checked: CheckedArguments & { readonly ok: true }
  readonly spawned: Spawned
  readonly signal: AbortSignal
  readonly hasEnded: () => boolean
}

/** Performs the calls of one run. */
export interface Calls extends CallRun {
  /** Enters a handler, with everything that surrounds it. */
  readonly enter: Work<Entry, Handled>
  /** Some hook is asked after calls. */
  readonly asksAfter: boolean
  /** Begins the other runs that a call has left. */
  readonly begin: (callId: string, left: readonly LeftChild[]) => void
  /** Calls of the batch that wait for a call that asks. */
  readonly holds: (call: BatchCall) => readonly string[]
}

/** Everything that surrounds each call of a run, composed once. */
export function enteringOf(context: RunContext, setup: RunSetup): Work<Entry, Handled> {
  const surroundings = toolSurroundings(context, setup)
  return wrapped<Entry, Handled>([...traced(context), ...middleware(context)], (entry) => {
    const { call, spec, checked, spawned, signal, hasEnded } = entry
    const spawn: CallRuns['spawn'] = (options, own) =>
      (spawned.runs ??= setup.plan.host.children.ofCall(context, setup, call)).spawn(options, own)
    const life = { signal, hasEnded, answers: () => answersOf(call), spawn }
    return invoke(spec, checked.value, toolContext(context, surroundings, { call, life }))
  })
}

function traced({ tracer }: RunContext): readonly Wrap<Entry, Handled>[] {
  if (tracer === null) return []
  return [(entry, next) => tracer.within({ kind: 'tool', callId: entry.call.callId }, () => next(entry))]
}

function middleware(context: RunContext): readonly Wrap<Entry, Handled>[] {
  const { runId, agentName, metadata, hookFailed } = context
  const { toolWraps } = context.extensions
  if (toolWraps.length === 0) return []
  return [
    (entry, next) => {
      const { call, spec, checked, signal } = entry
      const asked = { runId, agentName, metadata, callId: call.callId, tool: spec, args: checked.value, signal }
      return wrappedCall(toolWraps, hookFailed, {
        call: asked,
        work: (args) => next({ ...entry, checked: { ...checked, value: args } }),
      })
    },
  ]
}

/**
 * Performs an admitted call, from its start to its stored outcome, or to the question that it asks people. Rejects only if
 * the run cannot continue; the call has a stored outcome then too, if the log can store it.
 */
export async function performCall(calls: Calls, admission: Admission): Promise<void> {
  const startedAt = performance.now()
  const { context } = calls
  const { call, toolIndex, decision, spec } = admission
  const { callId, name: toolName, arguments: text, via } = call
  const isKnown = call.answers.length > 0 || call.verdict !== null
  const known = isKnown ? outcomeByPerson(call) : null
  if (known !== null) return completeUnrun(calls, call, { toolIndex, outcome: known })
  const by = decision !== null && { decision: recordedDecision(decision) }
  const facts = { ...(via !== undefined && { via }), ...by, ...(call.entries > 0 && ({ again: true } as const)) }
  await context.emit('tool_call_started', { callId, toolName, toolIndex, arguments: text, ...facts })
  const spawned: Spawned = { runs: null }
  const ended = (outcome: ToolOutcome): CallEnd => {
    const durationMs = Math.round((performance.now() - startedAt) * 1000) / 1000
    const entered = admission.checked?.text ?? text
    return callEnd({ toolIndex, durationMs, outcome }, call, { spec, runs: spawned.runs, entered })
  }
  try {
    const outcome = admission.outcome ?? (await run(calls, admission, spawned))
    // The call has no outcome: it is resolved as after a crash when the run continues.
    if (outcome === null) return
    if (outcome.kind === 'suspended') {
      await suspend(calls, call, { suspended: outcome, runs: spawned.runs })
      return
    }
    const source = (): ContentSource['kind'] | null =>
      savedAs(contentSourceOf(spec, call, { outcome, runs: spawned.runs }))
    // A program, and the hooks before it, get the whole.
    const isWhole = context.state.rules.computed === true
    const bounded = isWhole ? outcome : bound(calls.setup, { spec, outcome, source })
    const end = ended(bounded instanceof Promise ? await bounded : bounded)
    await complete(calls, call, calls.asksAfter ? { ...end, shown: await askAfterCall(context, call, end) } : end)
    if (spawned.runs !== null && outcome.kind === 'succeeded') calls.begin(callId, spawned.runs.takeLeft())
  } catch (error) {
    await complete(calls, call, ended(failureOf(error))).catch(() => undefined)
    throw error
  } finally {
    spawned.runs?.dropLeft()
  }
}

/** The call waits, for answers to its handler or to its children. */
async function suspend(
  { context, holds }: Calls,
  call: BatchCall,
  {
    suspended: { payload, answerSchema, key },
    runs,
  }: { readonly suspended: SuspendedCall; readonly runs: CallRuns | null },
): Promise<void> {
  const { callId, name: toolName, arguments: text } = call
  const path = [context.runId]
  const question = { payload, answerSchema, ...(key !== undefined && { key }) }
  const own = { kind: 'question', callId, toolName, arguments: text, ...question, path } as const
  const items = runs?.isWaiting === true ? runs.waiting : withOtherCalls([own], batchOf(context))
  const held = holds(call)
  const later = held.length > 0 && { holds: held }
  await context.emit('approval_requested', { items, callId, children: runs?.states ?? [], ...later })
}

/** The result of the handler, or the reason why there is none; null if a run that it has started was left. */
async function run({ context, enter }: Calls, admission: Admission, spawned: Spawned): Promise<Handled | null> {
  const { spec, checked, call, edited } = admission
  // Nothing starts after an abort.
  if (context.abort.isAborted || spec === undefined || checked?.ok !== true) return CANCELLED
  let ended = false
  const work = async (signal: AbortSignal): Promise<Handled> => {
    const handled = await enter({ call, spec, checked, spawned, signal, hasEnded: () => ended })
    // If one of its runs waits, the call waits too, once the others have come to a pause or an end.
    if (spawned.runs?.isWaiting === true) await spawned.runs.settled()
    return handled
  }
  const { stopped, value } = await settle(work, { abort: context.abort, timeoutMs: spec.timeoutMs })
  ended = true
  if (spawned.runs !== null) await spawned.runs.end()
  if (spawned.runs?.isLeft === true) return null
  if (stopped === null && spawned.runs?.isWaiting === true) return WAITS_FOR_CHILDREN
  if (stopped === null && value?.kind === 'suspended') return value
  if (spawned.runs !== null) await spawned.runs.endOpen()
  const hasOutcome = value !== undefined && value.kind !== 'suspended'
  if (!hasOutcome || (stopped !== null && value.kind !== 'succeeded'))
    return stopped === 'timed_out' ? timedOut(spec.name, spec.timeoutMs ?? 0) : CANCELLED
  const outcome = noteRepairs(value, checked.repairs)
  if (outcome.kind === 'rejected' || edited === null) return outcome
  // The model learns that a person changed its arguments.
  return { ...outcome, metadata: { ...outcome.metadata, edited_arguments: edited } }
}

/** The questions are with the children. */
const WAITS_FOR_CHILDREN: SuspendedCall = { kind: 'suspended', payload: null, answerSchema: {} }
