import { parse } from '../contracts/parse.js'
import type { Decision, Extension, ExtensionContext, PolicyCall, ToolSpec } from '../index.js'
import { either, filledString, boolean, functionOf, oneOf, partial } from '../util/shape.js'
import { subjectOf } from './call.js'
import type { DescribedCall } from './call.js'
import { ruling } from './decide.js'
import type { Explanation, Ruling } from './decide.js'
import { compiledRule } from './match.js'
import { checkedRules } from './rule.js'
import type { Rule } from './rule.js'

/** Options of a policy. */
export interface PolicyOptions {
  /** Name of the extension, for events; two policies of a run need two names. Default `policy`. */
  readonly name?: string | undefined
  /**
   * The decision about a call of which no policy has an opinion. Of several policies with a default, the strictest counts.
   * Default: none, so the tool's `requiresApproval` decides.
   */
  readonly default?: 'allow' | 'ask' | 'deny' | undefined
  /**
   * Reports the decision about each call and changes nothing: `true` records it in the log of the run, a function is called with
   * it. Default false.
   */
  readonly shadow?: boolean | ((report: ShadowReport) => void) | undefined
}

/** The decision that a policy in shadow mode would have made. */
export interface ShadowReport {
  readonly runId: string
  readonly callId: string
  readonly toolName: string
  /** Null: no opinion. */
  readonly decision: 'allow' | 'ask' | 'deny' | null
  /** Name of the rule that decided; null if none did. */
  readonly rule: string | null
  readonly step: Explanation['step']
}

/** A policy as a value for `use`. */
export interface PolicyExtension extends Extension {
  readonly policy: NonNullable<Extension['policy']>
  /** Its rules, in order. */
  readonly rules: readonly Rule[]
  /** A new policy with the same options that has these rules, such as grants, after its own. */
  extend(rules: readonly Rule[]): PolicyExtension
}

const OPTIONS = partial<PolicyOptions>({
  name: filledString,
  default: oneOf('allow', 'ask', 'deny'),
  shadow: either(boolean, functionOf<(report: ShadowReport) => void>()),
})

/**
 * An extension that allows calls, asks a person about them, or denies them, by rules.
 * @throws HarnessError `invalid_options` with the index of the rule and the field.
 * @example
 * new Harness({ model, use: [policy([{ decision: 'deny', path: '**\/.env' }], { default: 'ask' })] })
 */
export function policy(rules: readonly Rule[], options: PolicyOptions = {}): PolicyExtension {
  const checked = checkedRules(rules)
  const settings = parse(OPTIONS, options, '`policy`')
  const compiled = checked.map(compiledRule)
  const { name = 'policy', default: otherwise = null } = settings
  const extension: Extension & Pick<PolicyExtension, 'policy'> = {
    name,
    async policy(call, spec, context) {
      return decisionOf(ruling(compiled, subjectOf(await described(call, spec, context))), otherwise)
    },
  }
  const own: Pick<PolicyExtension, 'rules' | 'extend'> = {
    rules: checked,
    extend: (more) => policy([...rules, ...more], options),
  }
  // An extension has no members but those that the harness knows.
  return Object.freeze(withHidden(extension, own))
}

function withHidden<Shown extends object, Hidden extends object>(shown: Shown, hidden: Hidden): Shown & Hidden {
  const names = Object.keys(hidden) as (keyof Hidden)[]
  return Object.defineProperties(
    shown,
    Object.fromEntries(names.map((name) => [name, { value: hidden[name] }])),
  ) as Shown & Hidden
}

/** The decision of rules about a call, and the rule that decided. It knows no default. */
export function explain(rules: readonly Rule[], call: DescribedCall): Explanation {
  const compiled = checkedRules(rules).map(compiledRule)
  const { decision, rule, step } = ruling(compiled, subjectOf(call))
  return { decision, rule, step }
}

async function described(call: PolicyCall, spec: ToolSpec, context: ExtensionContext): Promise<DescribedCall> {
  const { annotations, reach, pathFields, metadata } = spec
  return {
    ...{ tool: call.name, args: call.args, annotations, reach, pathFields, metadata },
    requiresApproval: await approvalFor(call, spec, context),
    agent: context.agentName,
  }
}

/** A rule of a tool that cannot decide is no permission. */
async function approvalFor(
  { args, callId }: PolicyCall,
  { requiresApproval: rule = false }: ToolSpec,
  { runId, metadata }: ExtensionContext,
): Promise<boolean | 'always'> {
  if (typeof rule !== 'function') return rule
  try {
    return await rule(args, { runId, callId, metadata })
  } catch {
    return true
  }
}

function decisionOf({ decision, rule, name }: Ruling, otherwise: 'allow' | 'ask' | 'deny' | null): Decision | null {
  if (decision === null) return otherwise
  return { decision, reason: rule?.note, rule: name ?? undefined }
}
