import type { Subject } from './call.js'
import type { Rule } from './rule.js'

/** Whether a rule matches a call; `maybe` if the call cannot be read well enough to say. */
export type Match = 'yes' | 'maybe' | 'no'

/** A rule, prepared for many calls. */
export interface CompiledRule {
  readonly rule: Rule
  /** Its name in events. */
  readonly name: string
  /** The most specific condition: 3 a part of the arguments, 2 the tool, 1 the agent or the category, 0 none. */
  readonly specificity: 0 | 1 | 2 | 3
  /** It speaks of this tool, not of a kind of tools. */
  readonly namesTool: boolean
  match(subject: Subject): Match
}

export function compiledRule(rule: Rule, index: number): CompiledRule {
  const { tool, category, agent, args, source } = rule
  const checks: ((subject: Subject) => boolean)[] = []
  if (tool !== undefined) {
    const names = (typeof tool === 'string' ? [tool] : tool).map(wildcard)
    checks.push((subject) => names.some((name) => name(subject.tool)))
  }
  if (category !== undefined) checks.push((subject) => subject.category === category)
  if (agent !== undefined) {
    const name = wildcard(agent)
    checks.push((subject) => subject.agent !== null && name(subject.agent))
  }
  if (source !== undefined) {
    checks.push(({ sources }) => sources.some((each) => each === source || each.startsWith(`${source}:`)))
  }
  for (const [key, glob] of Object.entries(args ?? {})) {
    const fits = wildcard(glob)
    checks.push((subject) => {
      const value = subject.args[key]
      return value !== undefined && fits(typeof value === 'string' ? value : JSON.stringify(value))
    })
  }
  return {
    rule,
    name: rule.id ?? String(index + 1),
    specificity: specificityOf(rule),
    namesTool: tool !== undefined || rule.command !== undefined,
    match: (subject) => (checks.every((check) => check(subject)) ? 'yes' : 'no'),
  }
}

function specificityOf({ args, command, path, host, source, tool, agent, category }: Rule): 0 | 1 | 2 | 3 {
  if ([args, command, path, host, source].some((condition) => condition !== undefined)) return 3
  if (tool !== undefined) return 2
  return agent === undefined && category === undefined ? 0 : 1
}

/** A test for a string with `*` for any characters. */
export function wildcard(glob: string): (text: string) => boolean {
  const parts = glob.split('*')
  const first = parts[0] ?? ''
  const last = parts.at(-1) ?? ''
  if (parts.length === 1) return (text) => text === glob
  const middle = parts.slice(1, -1)
  return (text) => {
    if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false
    let at = first.length
    for (const part of middle) {
      const found = text.indexOf(part, at)
      if (found === -1) return false
      at = found + part.length
    }
    return at <= text.length - last.length
  }
}
