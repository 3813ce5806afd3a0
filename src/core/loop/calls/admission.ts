import type { FinishReason } from '#contracts/entry.js'
import type { CallDecision, OtherCall, PendingItem } from '#contracts/result.js'
import { checkArguments } from '../../tools/boundary/check-arguments.js'
import type { CheckedArguments } from '../../tools/boundary/check-arguments.js'
import type { ApprovalContext, ToolOutcome, ToolSpec } from '../../tools/tool-spec.js'
import { settle } from '#util/abort.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { plainJson } from '#util/plain-json.js'
import type { RunContext } from '../run-context.js'
import { extensionContext } from '../run-context.js'
import type { RunSetup } from '../run-plan.js'
import { decisionOf } from '../../extension/policy-decision.js'
import type { PolicyDecision } from '../../extension/policy-decision.js'
import type { ApprovalAnswer } from '../../state/answers.js'
import type { BatchCall } from '../../state/batch-call.js'
import { askBeforeCall } from './call-hooks.js'
import { cancelledByHook, denied, notAlone, unknownTool } from './call-outcomes.js'
import { flowsIn } from '#contracts/flows.js'

/** A call on its way to its run. */
export interface Admission {
  readonly call: BatchCall
  readonly toolIndex: number
  /** Undefined for a tool that does not exist. */
  readonly spec: ToolSpec | undefined
  /** The arguments that the call will run with; undefined until they are checked. */
  readonly checked: CheckedArguments | undefined
  /** The decision of the policies; null if none has an opinion. */
  readonly decision: PolicyDecision | null
  /** A person has to agree to the call. */
  readonly asks: boolean
  /** A person's arguments in place of the model's. */
  readonly edited: JsonObject | null
  /** Ends the call: its tool does not run. */
  readonly outcome: ToolOutcome | null
  /** The question to a person: nothing of the batch runs before the answer. */
  readonly item: PendingItem | null
}

/** One stage of a call. A stage that sets `outcome` or `item` is the last. */
type Stage = (run: Admitting, admission: Admission) => Admission | Promise<Admission>

interface Admitting {
  readonly context: RunContext
  readonly setup: RunSetup
}

/** Takes a call through the stages before its execution. */
export type Admit = (
  call: BatchCall,
  how: { readonly toolIndex: number; readonly checked: CheckedArguments | undefined },
) => Promise<Admission>

/** The stages of every call of a run before it runs, composed once. */
export function admissionOf(context: RunContext, setup: RunSetup): Admit {
  const run: Admitting = { context, setup }
  const guarded: readonly Stage[] = context.hasHook('before_tool_call') ? [guards] : []
  const stages: readonly Stage[] = [...guarded, usable, policies, approval]
  return async function admit(call, { toolIndex, checked }) {
    const spec = setup.tools.get(call.name)
    let admission: Admission = { call, toolIndex, spec, checked, ...UNDECIDED }
    for (const stage of stages) {
      const next = stage(run, admission)
      admission = next instanceof Promise ? await next : next
      if (admission.outcome !== null || admission.item !== null) return admission
    }
    return admission
  }
}

const UNDECIDED = { decision: null, asks: false, edited: null, outcome: null, item: null }

/** The hooks before a call are asked once: after a pause or a crash, their answers are known. */
async function guards({ context }: Admitting, admission: Admission): Promise<Admission> {
  const { call, toolIndex, spec } = admission
  const isKnown = call.prepared !== undefined || !context.hasHook('before_tool_call', call.name)
  const prepared = isKnown ? (call.prepared ?? {}) : await askBeforeCall(context, call, { toolIndex, spec })
  if (prepared.cancelled !== undefined) return { ...admission, outcome: cancelledByHook(prepared.cancelled) }
  if (spec === undefined || prepared.arguments === undefined) return admission
  return { ...admission, checked: await checkArguments(spec, prepared.arguments) }
}

/** A call that will be refused as it is needs nobody's agreement. */
function usable(run: Admitting, admission: Admission): Admission | Promise<Admission> {
  const { call, spec, checked } = admission
  if (spec === undefined) return { ...admission, outcome: unknownTool(call.name, run.setup.tools.keys()) }
  if (spec.sequential === 'alone' && batchOf(run.context).length > 1) return { ...admission, outcome: notAlone(spec) }
  if (checked === undefined) return checkedAgain(run, admission, spec)
  return checked.ok ? admission : { ...admission, outcome: checked.outcome }
}

/** Arguments are checked when the reply comes, and again if the call continues elsewhere. */
async function checkedAgain({ context }: Admitting, admission: Admission, spec: ToolSpec): Promise<Admission> {
  const checked = await checkCall(spec, admission.call.arguments, finishReasonOf(context))
  return checked.ok ? { ...admission, checked } : { ...admission, checked, outcome: checked.outcome }
}

/** The arguments of a call, checked; those of a reply that was cut off may be incomplete and are never used. */
export function checkCall(
  spec: ToolSpec,
  text: string,
  finishReason: FinishReason,
): CheckedArguments | Promise<CheckedArguments> {
  const cut = CUT_OFF[finishReason]
  if (cut === undefined) return checkArguments(spec, text)
  const content = `\`${spec.name}\` was not run: ${cut}, so the call may be incomplete. Call it again, with less at once.`
  return { ok: false, text, outcome: { kind: 'failed', errorType: 'IncompleteCall', content, retry: true } }
}

const CUT_OFF: Partial<Record<FinishReason, string>> = {
  length: 'the reply was cut off at the output limit',
  refusal: 'the reply ended in a refusal',
  content_filter: "the provider's content filter stopped the reply",
  cancelled: 'the reply was cancelled',
  error: 'the reply ended in an error',
}

/** The finish reason of the reply that made the calls of the batch. */
export function finishReasonOf({ state }: RunContext): FinishReason {
  const last = state.transcript.at(-1)
  return last?.role === 'assistant' ? last.finishReason : 'other'
}

/** The strictest policy decides; if none has an opinion, `requiresApproval` of the tool. Not asked for a call that has begun. */
function policies(run: Admitting, admission: Admission): Admission | Promise<Admission> {
  const { call, spec, checked } = admission
  if (spec === undefined || checked?.ok !== true || call.entries > 0) return admission
  const rule = spec.requiresApproval ?? false
  if (run.context.extensions.policies.length === 0 && typeof rule !== 'function')
    return rule === false ? admission : { ...admission, asks: true }
  return decided(run, admission)
}

async function decided(run: Admitting, admission: Admission): Promise<Admission> {
  const decision = await askPolicies(run, admission)
  if (decision === null) return { ...admission, asks: await requiresApproval(run, admission) }
  if (decision.decision === 'deny') return { ...admission, decision, outcome: denied(decision) }
  return { ...admission, decision, asks: decision.decision === 'ask' || admission.spec?.requiresApproval === 'always' }
}

async function askPolicies({ context, setup }: Admitting, admission: Admission): Promise<PolicyDecision | null> {
  const { call, spec, checked } = admission
  const { policies } = context.extensions
  if (policies.length === 0 || spec === undefined || checked?.ok !== true) return null
  const asked = { callId: call.callId, name: call.name, arguments: checked.text, args: checked.value }
  const decide = (): Promise<PolicyDecision | null> =>
    decisionOf(policies, { call: asked, spec }, { ...extensionContext(context), root: setup.root, tools: setup.tools })
  const { value } = await settle(decide, { abort: context.abort, timeoutMs: undefined })
  context.signal.throwIfAborted()
  return value ?? null
}

async function requiresApproval({ context }: Admitting, { call, spec, checked }: Admission): Promise<boolean> {
  const rule = spec?.requiresApproval ?? false
  // A person has decided already.
  if (approvalOf(call) !== null) return false
  if (typeof rule !== 'function' || checked?.ok !== true) return rule === true || rule === 'always'
  // A rule that cannot decide is no permission.
  return decidedByTool(context, async () => rule(checked.value, askedOf(context, call)), true)
}

/** A person's answer counts, with the arguments that the person edited; else a person is asked if that is decided. */
function approval(run: Admitting, admission: Admission): Admission | Promise<Admission> {
  const answer = approvalOf(admission.call)
  if (answer === null) return admission.asks ? asking(run.context, admission) : admission
  if (!answer.approved) return { ...admission, outcome: { kind: 'rejected', reason: answer.reason ?? null } }
  const edited = answer.editedArguments
  return edited === undefined || admission.spec === undefined ? admission : withEdit(run, { ...admission, edited })
}

async function asking(context: RunContext, admission: Admission): Promise<Admission> {
  const { call, checked, decision } = admission
  const payload = await preview(context, admission)
  const item: PendingItem = {
    kind: 'approval',
    callId: call.callId,
    toolName: call.name,
    arguments: checked?.text ?? call.arguments,
    ...(payload !== undefined && { payload }),
    ...(decision !== null && flowsIn(decision)),
    ...(decision !== null && { decision: recordedDecision(decision) }),
    path: [context.runId],
  }
  return { ...admission, item }
}

/** The calls of the current reply. */
export function batchOf({ state: { phase } }: RunContext): readonly BatchCall[] {
  return phase.at === 'batch' ? phase.calls : []
}

/** Items with the other calls of their batch: nothing that an approved call depends on is hidden. */
export function withOtherCalls(items: readonly PendingItem[], batch: readonly BatchCall[]): readonly PendingItem[] {
  if (batch.length < 2) return items
  const asked = new Set(items.map(({ callId }) => callId))
  return items.map((item) => {
    const place = batch.findIndex(({ callId }) => callId === item.callId)
    // The item of a child run has the other calls of its own batch.
    if (place === -1) return item
    const otherCalls = batch.flatMap((call, index): readonly OtherCall[] => {
      if (index === place) return []
      const { callId, name: toolName, prepared, settled } = call
      const when = settled !== null ? 'ended' : index < place ? 'before' : 'after'
      const text = asked.has(callId) ? undefined : (prepared?.arguments ?? call.arguments)
      return [{ callId, toolName, ...(text !== undefined && { arguments: text }), when }]
    })
    return { ...item, otherCalls }
  })
}

async function preview(context: RunContext, { call, spec, checked }: Admission): Promise<JsonValue | undefined> {
  const show = spec?.preview
  if (show === undefined || checked?.ok !== true) return undefined
  const shown = await decidedByTool(context, async () => show(checked.value, askedOf(context, call)), undefined)
  return shown === undefined ? undefined : plainJson(shown)
}

/** A person's arguments are checked like any others, and policies may still deny them. */
async function withEdit(run: Admitting, admission: Admission): Promise<Admission> {
  const { spec, edited, call } = admission
  if (spec === undefined || edited === null) return admission
  const checked = await checkArguments(spec, JSON.stringify(edited))
  if (!checked.ok) return { ...admission, checked, outcome: checked.outcome }
  const decision = call.entries > 0 ? null : await askPolicies(run, { ...admission, checked })
  if (decision?.decision === 'deny') return { ...admission, checked, decision, outcome: denied(decision) }
  return { ...admission, checked }
}

/** A person's decision on the call itself. */
function approvalOf({ callId, answers }: BatchCall): ApprovalAnswer | null {
  return answers.find((answer): answer is ApprovalAnswer => answer.callId === callId && 'approved' in answer) ?? null
}

/** A decision as events keep it. */
export function recordedDecision({ decision, extension, rule, reason, alsoAsked }: CallDecision): CallDecision {
  return { decision, extension, rule, reason, ...(alsoAsked !== undefined && { alsoAsked }) }
}

function askedOf({ runId, metadata }: RunContext, { callId }: BatchCall): ApprovalContext {
  return { runId, callId, metadata }
}

/** The answer of a tool's own function; `otherwise` if it fails. One that does not end is left when the run is aborted. */
async function decidedByTool<T>({ abort }: RunContext, ask: () => Promise<T>, otherwise: T): Promise<T> {
  const { value } = await settle(ask, { abort, timeoutMs: undefined }).catch(() => ({ value: otherwise }))
  abort.signal.throwIfAborted()
  return value ?? otherwise
}
