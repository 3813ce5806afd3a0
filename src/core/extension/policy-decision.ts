import type { ModelToolCall } from '../model-session.js'
import { flowsIn } from '#contracts/flows.js'
import type { Flows } from '#contracts/flows.js'
import type { CallDecision } from '#contracts/result.js'
import type { ToolSpec } from '../tools/tool-spec.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { anything, boolean, list, object, oneOf, optional, parseAs, string } from '#util/validate.js'
import { failedMember } from './context.js'
import type { ExtensionContext, Named } from './context.js'

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
      /** It counts only if no policy has an opinion of its own. Default false. */
      readonly isDefault?: boolean | undefined
    })

/** A call that is about to run: `arguments` is the raw JSON text, `args` are the arguments that the tool will get. */
export interface PolicyCall extends ModelToolCall {
  readonly args: JsonObject
}

/** The run of a call, for a policy. */
export interface PolicyContext<out Deps = unknown> extends ExtensionContext<Deps> {
  /** Absolute path of the workspace. */
  readonly root: string
  /** The tools of the run, by name. */
  readonly tools?: ReadonlyMap<string, ToolSpec> | undefined
}

/**
 * Allows a call, asks a person, or denies it; null: no opinion. Called with the arguments that will
 * run: after hooks, and again after a person edited them. A policy that throws fails the run with `hook_failed`.
 */
export type Policy<in Deps = unknown> = (
  call: PolicyCall,
  spec: ToolSpec,
  context: PolicyContext<Deps>,
) => Decision | null | Promise<Decision | null>

/** The decision of several policies together. */
export type PolicyDecision = CallDecision & Flows

const STRICTNESS: Readonly<Record<DecisionKind, number>> = { allow: 0, ask: 1, deny: 2 }

/**
 * Asks each policy in order, until one denies. The strictest answer counts, of equal ones the first; if none has an opinion,
 * the strictest default. Null if there is none either.
 * @throws HarnessError `hook_failed` if a policy throws or returns something that is not a decision.
 */
export async function decisionOf(
  policies: readonly Named<Policy>[],
  { call, spec }: { readonly call: PolicyCall; readonly spec: ToolSpec },
  context: PolicyContext,
): Promise<PolicyDecision | null> {
  let strictest: PolicyDecision | null = null
  let byDefault: PolicyDecision | null = null
  for (const policy of policies) {
    const answer = await answerOf(policy, () => policy.member(call, spec, context))
    if (answer === null) continue
    if (answer.isDefault) byDefault = stricter(byDefault, answer.decided)
    else strictest = stricter(strictest, answer.decided)
    if (strictest?.decision === 'deny') break
  }
  return strictest ?? byDefault
}

function stricter(first: PolicyDecision | null, second: PolicyDecision): PolicyDecision {
  if (first === null || STRICTNESS[second.decision] > STRICTNESS[first.decision]) return second
  if (first.decision !== 'ask' || second.decision !== 'ask') return first
  return { ...flowsIn(second), ...first, alsoAsked: [...(first.alsoAsked ?? []), second.extension] }
}

const kind = oneOf('allow', 'ask', 'deny')

const DECISION = object<Exclude<Decision, DecisionKind>>({
  decision: kind,
  reason: optional(string),
  rule: optional(string),
  isDefault: optional(boolean),
  provenance: optional(list(anything())),
})

interface PolicyAnswer {
  readonly decided: PolicyDecision
  readonly isDefault: boolean
}

/** The checked answer of a policy; null if it has no opinion. */
async function answerOf({ extension }: Named<Policy>, ask: () => ReturnType<Policy>): Promise<PolicyAnswer | null> {
  try {
    const answer = (await ask()) as unknown
    if (answer === null || answer === undefined) return null
    const parsed = parseAs(DECISION, isObject(answer) ? answer : { decision: answer }, 'its answer')
    if (!parsed.ok) throw new TypeError(parsed.problem)
    const { decision, reason = null, rule = null, isDefault = false } = parsed.value
    return { decided: { decision, reason, rule, extension, ...flowsIn(parsed.value) }, isDefault }
  } catch (cause) {
    throw failedMember(`The policy of extension \`${extension}\``, cause)
  }
}
