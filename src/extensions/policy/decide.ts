import type { Subject } from './call.js'
import type { CompiledRule } from './match.js'
import type { Rule } from './rule.js'
import type { ShellPart } from './shell/command-line.js'

/**
 * The step at which rules decided: a rule that denies, a tool that only asks the person at hand, `requiresApproval: 'always'`, a
 * grant, the most specific rule, a shell command that cannot be read, another `requiresApproval`; `none`: no opinion.
 */
export type Step = 'deny' | 'interactive' | 'always' | 'grant' | 'rule' | 'command' | 'approval' | 'none'

/** The decision of rules about a call. */
export interface Explanation {
  /** Null: no opinion. */
  readonly decision: 'allow' | 'ask' | 'deny' | null
  /** The rule that decided; null if none did. */
  readonly rule: Rule | null
  readonly step: Step
}

/** A decision, with its rule and its reason. */
export interface Ruling extends Omit<Explanation, 'rule'> {
  readonly by: CompiledRule | null
  readonly reason: string | null
}

/** The decision about one command of a call, or about a call without commands. */
interface PartRuling extends Ruling {
  /** A rule that speaks of this tool or command allows it. */
  readonly lifts: boolean
}

/** The order of a policy. */
export function decideCall(rules: readonly CompiledRule[], subject: Subject): Ruling {
  const parts = subject.line?.parts ?? [null]
  const denial = findDenial(rules, subject, parts)
  if (denial?.decision === 'deny') return denial
  if (subject.isInteractive) return rulingWithoutRule('allow', 'interactive')
  if (subject.approval === 'always') return rulingWithoutRule('ask', 'always')
  const strictest = parts.map((part) => partRuling(rules, subject, part)).reduce(stricterRuling)
  if (strictest.decision === 'ask') return strictest
  if (denial !== null) return denial
  const unclear = unclearCommand(rules, subject)
  if (unclear !== null) return unclear
  return subject.approval && !strictest.lifts ? rulingWithoutRule('ask', 'approval') : strictest
}

/** A rule that denies; one that may do so asks. */
function findDenial(rules: readonly CompiledRule[], subject: Subject, parts: readonly (ShellPart | null)[]): Ruling | null {
  let possible: Ruling | null = null
  for (const rule of rules) {
    if (rule.rule.decision !== 'deny') continue
    const matches = parts.map((part) => rule.match(subject, part))
    if (matches.includes('yes')) return decidedBy(rule, 'deny')
    const reason = rule.rule.note ?? 'it may be one that a rule denies.'
    if (matches.includes('maybe')) possible ??= { decision: 'ask', by: rule, step: 'command', reason }
  }
  return possible
}

function partRuling(rules: readonly CompiledRule[], subject: Subject, part: ShellPart | null): PartRuling {
  const matching = rules.filter((each) => each.rule.decision !== 'deny' && each.match(subject, part) !== 'no')
  const best = mostSpecific(matching.filter(({ rule }) => rule.grant !== true))
  const isAllowed = best?.rule.decision === 'allow'
  const granted = isAllowed ? undefined : mostSpecific(matching.filter(({ rule }) => rule.grant === true))
  const lifts = matching.some(({ rule, namesTool }) => rule.decision === 'allow' && namesTool)
  if (granted !== undefined) return { ...decidedBy(granted, 'grant'), lifts }
  return best === undefined ? { ...rulingWithoutRule(null, 'none'), lifts } : { ...decidedBy(best, 'rule'), lifts }
}

const STRICTNESS = { allow: 0, none: 1, ask: 2, deny: 3 } as const

/** Every part must be allowed by itself. */
function stricterRuling(first: PartRuling, second: PartRuling): PartRuling {
  const isStricter = STRICTNESS[second.decision ?? 'none'] > STRICTNESS[first.decision ?? 'none']
  return { ...(isStricter ? second : first), lifts: first.lifts && second.lifts }
}

/** A command that does more than its parts say, or something else, asks; unless a rule is that whole line. */
function unclearCommand(rules: readonly CompiledRule[], subject: Subject): Ruling | null {
  const { line } = subject
  if (line === null || line.unclear === null) return null
  const [first = null] = line.parts
  const isWhole = rules.some(
    (each) =>
      each.rule.decision === 'allow' && each.rule.command?.trim() === line.text && each.match(subject, first) === 'yes',
  )
  return isWhole ? null : { ...rulingWithoutRule('ask', 'command'), reason: `the command ${line.unclear}.` }
}

function mostSpecific(rules: readonly CompiledRule[]): CompiledRule | undefined {
  const ruleStrictness = ({ rule }: CompiledRule): number => (rule.decision === 'allow' ? 0 : 1)
  return rules.toSorted(
    (left, right) => right.specificity - left.specificity || ruleStrictness(right) - ruleStrictness(left),
  )[0]
}

function decidedBy(rule: CompiledRule, step: Step): Ruling {
  return { decision: rule.rule.decision, by: rule, step, reason: rule.rule.note ?? null }
}

function rulingWithoutRule(decision: Ruling['decision'], step: Step): Ruling {
  return { decision, by: null, step, reason: null }
}
