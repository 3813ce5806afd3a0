import type { Subject } from './call.js'
import type { CompiledRule } from './match.js'
import type { Rule } from './rule.js'

/** Where the order of a policy ended: `none` if no rule has anything to say. */
export type Step = 'deny' | 'interactive' | 'always' | 'grant' | 'rule' | 'command' | 'approval' | 'none'

/** The decision of rules about a call. */
export interface Explanation {
  /** Null: no opinion. */
  readonly decision: 'allow' | 'ask' | 'deny' | null
  /** The rule that decided; null if none did. */
  readonly rule: Rule | null
  readonly step: Step
}

/** A decision, with the name of its rule. */
export interface Ruling extends Explanation {
  readonly name: string | null
}

export function ruling(rules: readonly CompiledRule[], subject: Subject): Ruling {
  const denied = rules.find((rule) => rule.rule.decision === 'deny' && rule.match(subject) === 'yes')
  if (denied !== undefined) return by(denied, 'deny')
  if (subject.isInteractive) return { decision: 'allow', rule: null, name: null, step: 'interactive' }
  if (subject.approval === 'always') return { decision: 'ask', rule: null, name: null, step: 'always' }
  const matching = rules.filter((rule) => rule.match(subject) === 'yes')
  const best = mostSpecific(matching.filter(({ rule }) => rule.grant !== true))
  const granted = best?.rule.decision === 'allow' ? undefined : mostSpecific(matching.filter(({ rule }) => rule.grant))
  const deciding = granted ?? best
  if (deciding?.rule.decision === 'ask') return by(deciding, 'rule')
  const lifts = matching.some(({ rule, namesTool }) => rule.decision === 'allow' && namesTool)
  if (subject.approval && !lifts) return { decision: 'ask', rule: null, name: null, step: 'approval' }
  if (deciding === undefined) return { decision: null, rule: null, name: null, step: 'none' }
  return by(deciding, granted === undefined ? 'rule' : 'grant')
}

function by({ rule, name }: CompiledRule, step: Step): Ruling {
  return { decision: rule.decision, rule, name, step }
}

function mostSpecific(rules: readonly CompiledRule[]): CompiledRule | undefined {
  const strictness = ({ rule }: CompiledRule): number => (rule.decision === 'allow' ? 0 : 1)
  return rules.toSorted(
    (left, right) => right.specificity - left.specificity || strictness(right) - strictness(left),
  )[0]
}
