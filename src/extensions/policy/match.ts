import type { Subject } from './call.js'
import { ruleConditions } from './conditions.js'
import type { Match } from './conditions.js'
import type { Rule } from './rule.js'
import type { ShellPart } from './shell/command-line.js'

/** A rule, prepared for many calls. */
export interface CompiledRule {
  readonly rule: Rule
  /** Its name in events. */
  readonly name: string
  /** The most specific condition: 3 a part of the arguments, 2 the tool, 1 the agent or the category, 0 none. */
  readonly specificity: 0 | 1 | 2 | 3
  /** It speaks of this tool or this command, not of a kind of tools. */
  readonly namesTool: boolean
  match(subject: Subject, part: ShellPart | null): Match
}

export function compiledRule(rule: Rule, index: number): CompiledRule {
  const conditions = ruleConditions(rule)
  return {
    rule,
    name: rule.id ?? String(index + 1),
    specificity: ruleSpecificity(rule),
    namesTool: rule.tool !== undefined || rule.command !== undefined,
    match(subject, part) {
      let match: Match = 'yes'
      for (const condition of conditions) {
        const held = condition(subject, part)
        if (held === 'no') return 'no'
        if (held === 'maybe') match = 'maybe'
      }
      return match
    },
  }
}

function ruleSpecificity({ args, command, path, host, source, tool, agent, category }: Rule): 0 | 1 | 2 | 3 {
  if ([args, command, path, host, source].some((condition) => condition !== undefined)) return 3
  if (tool !== undefined) return 2
  return agent === undefined && category === undefined ? 0 : 1
}
