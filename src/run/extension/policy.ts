import { HarnessError, messageOf } from '../../contracts/errors.js'
import type { TranscriptEntry } from '../../contracts/entry.js'
import type { ModelToolCall } from '../../contracts/model.js'
import { flowsIn, flowsShape } from '../../contracts/flows.js'
import type { Flows } from '../../contracts/flows.js'
import type { CallDecision } from '../../contracts/result.js'
import type { ToolSpec } from '../../tools/spec.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import { anything, object, oneOf, optional, parseAs, string } from '../../util/shape.js'
import type { ExtensionContext } from './context.js'

export type DecisionKind = 'allow' | 'ask' | 'deny'

/** The decision of a policy about a call. */
export type Decision =
  | DecisionKind
  | (Flows & {
      readonly decision: DecisionKind
      /** The reason, for the model if the call is denied, and for the person who is asked. */
      readonly reason?: string | undefined
      /** Name of the rule that decided, for events. */
      readonly rule?: string | undefined
    })

/** A call that is about to run: `arguments` is the raw JSON text, `args` are the arguments that the tool will get. */
export interface PolicyCall extends ModelToolCall {
  readonly args: JsonObject
}

/**
 * Allows a call, asks a person, or denies it; null: no opinion. Called with the arguments that will
 * run: after hooks, and again after a person edited them. A policy that throws fails the run with `hook_failed`.
 */
export type Policy<in Deps = unknown> = (
  call: PolicyCall,
  spec: ToolSpec,
  context: ExtensionContext<Deps>,
) => Decision | null | Promise<Decision | null>

/** A policy, and the extension that it comes from. */
export interface NamedPolicy {
  readonly extension: string
  readonly policy: Policy
  /** The policy of a child run; default: the same. `transcript` is that of the run that starts it. */
  readonly forChild?: (transcript: readonly TranscriptEntry[]) => NamedPolicy
}

/** The decision of several policies together. */
export type PolicyDecision = CallDecision & Flows

const STRICTNESS: Readonly<Record<DecisionKind, number>> = { allow: 0, ask: 1, deny: 2 }

/**
 * Asks each policy in order, until one denies. The strictest answer counts, of equal ones the first; null if no policy
 * has an opinion.
 * @throws HarnessError `hook_failed` if a policy throws or returns something that is not a decision.
 */
export async function decisionOf(
  policies: readonly NamedPolicy[],
  { call, spec }: { readonly call: PolicyCall; readonly spec: ToolSpec },
  context: ExtensionContext,
): Promise<PolicyDecision | null> {
  let strictest: PolicyDecision | null = null
  for (const { extension, policy } of policies) {
    const decided = checkedDecision(extension, await answerOf(extension, () => policy(call, spec, context)))
    if (decided === null) continue
    if (strictest === null || STRICTNESS[decided.decision] > STRICTNESS[strictest.decision]) strictest = decided
    if (strictest.decision === 'deny') break
  }
  return strictest
}

async function answerOf(extension: string, ask: () => ReturnType<Policy>): Promise<unknown> {
  try {
    return await ask()
  } catch (cause) {
    throw failed(extension, messageOf(cause), cause)
  }
}

const kind = oneOf('allow', 'ask', 'deny')

const DECISION = object<Exclude<Decision, DecisionKind>>({
  decision: kind,
  reason: optional(string),
  rule: optional(string),
  ...flowsShape(anything()),
})

function checkedDecision(extension: string, answer: unknown): PolicyDecision | null {
  if (answer === null || answer === undefined) return null
  const parsed = parseAs(DECISION, isObject(answer) ? answer : { decision: answer }, 'its answer')
  if (!parsed.ok) throw failed(extension, parsed.problem)
  const { decision, reason = null, rule = null } = parsed.value
  return { decision, reason, rule, extension, ...flowsIn(parsed.value) }
}

function failed(extension: string, problem: string, cause?: unknown): HarnessError {
  return new HarnessError('hook_failed', `The policy of extension \`${extension}\` failed: ${problem}`, { cause })
}
