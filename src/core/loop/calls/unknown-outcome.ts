import type { CheckedArguments } from '../../tools/boundary/check-arguments.js'
import { outcomeOf } from '../../tools/tool-result.js'
import type { Reconciliation, ToolOutcome, ToolSpec } from '../../tools/tool-spec.js'
import { settle } from '#util/abort.js'
import type { RunContext } from '../run-context.js'
import { namesOf } from '../../state/batch-call.js'
import type { BatchCall } from '../../state/batch-call.js'
import { batchOf, checkCall, finishReasonOf, withOtherCalls } from './admission.js'
import { completeUnrun } from './complete-call.js'
import type { CallRun } from './complete-call.js'
import { whenUnknown } from '../tool-context.js'

/**
 * Settles a call that was in progress when its process ended. The result of the tool's `reconcile` wins; otherwise
 * `onUnknownOutcome` decides: run it again, report to the model that the outcome is unknown, or ask a person.
 */
export async function settleUnknown(run: CallRun, call: BatchCall, toolIndex: number): Promise<void> {
  const { context, setup } = run
  const { name: toolName } = call
  const spec = setup.tools.get(toolName)
  const found = spec === undefined ? UNKNOWN : await reconciled(context, spec, call)
  const settledBy = settledHow(spec, call, found)
  await context.emit('tool_call_interrupted', { ...namesOf(call), toolIndex, settledBy })
  if (settledBy === 'report') return completeUnrun(run, call, { toolIndex, outcome: unknownOutcome(toolName) })
  if (settledBy === 'pause') return askPerson(context, call)
  if (spec === undefined || found.outcome !== 'happened') return
  return completeUnrun(run, call, { toolIndex, outcome: outcomeOf(found.result) })
}

const UNKNOWN: Reconciliation = { outcome: 'unknown' }

async function reconciled(context: RunContext, spec: ToolSpec, call: BatchCall): Promise<Reconciliation> {
  const { reconcile } = spec
  if (reconcile === undefined || isRejected(call)) return UNKNOWN
  const checked: CheckedArguments = await checkCall(
    spec,
    call.prepared?.arguments ?? call.arguments,
    finishReasonOf(context),
  )
  if (!checked.ok) return UNKNOWN
  const { abort } = context
  const ask = (): Promise<Reconciliation> => reconcile(`${context.runId}:${call.callId}`, checked.value)
  const { value } = await settle(ask, { abort, timeoutMs: spec.timeoutMs }).catch(() => ({ value: UNKNOWN }))
  context.signal.throwIfAborted()
  return value ?? UNKNOWN
}

function settledHow(
  spec: ToolSpec | undefined,
  call: BatchCall,
  found: Reconciliation,
): 'retry' | 'report' | 'pause' | 'reconcile' {
  // A call that a person has rejected is not run when it is begun again.
  if (isRejected(call)) return 'retry'
  if (found.outcome === 'happened') return 'reconcile'
  if (found.outcome === 'did_not_happen') return 'retry'
  return spec === undefined ? 'report' : whenUnknown(spec)
}

function isRejected({ callId, answers }: BatchCall): boolean {
  return answers.some((answer) => answer.callId === callId && 'approved' in answer && !answer.approved)
}

function askPerson(context: RunContext, { callId, name: toolName, arguments: text }: BatchCall): Promise<void> {
  const item = { kind: 'unknown_outcome', callId, toolName, arguments: text, path: [context.runId] } as const
  return context.emit('approval_requested', { items: withOtherCalls([item], batchOf(context)), callId })
}

function unknownOutcome(toolName: string): ToolOutcome {
  const content = `\`${toolName}\` was running when the process ended: it is unknown whether it took effect. Check before you call it again.`
  return { kind: 'failed', errorType: 'UnknownOutcome', content, retry: false }
}
