import { parse } from '#contracts/parse.js'
import { HarnessError } from '#contracts/errors.js'
import type { JsonInput } from '#util/json.js'
import { isObject, parseJson } from '#util/json.js'
import { either, filledString, list, matching, object, oneOf, optional, record, where } from '#util/validate.js'

/** The kind of effect that a tool has. */
export type Category = (typeof CATEGORIES)[number]

const CATEGORIES = ['read', 'edit', 'execute', 'network', 'mcp', 'other'] as const

/**
 * A rule about calls, as plain JSON. It matches a call if all of its conditions do; one without conditions matches every call.
 */
export interface Rule {
  /** Its name in events and for `explain`. Default: its position in the list, from `1`. */
  readonly id?: string | undefined
  readonly decision: 'allow' | 'ask' | 'deny'
  /** Names of tools; `*` stands for any characters: `github_*`. */
  readonly tool?: string | readonly string[] | undefined
  /** From the annotations and the reach of the tool; its name is the last resort. */
  readonly category?: Category | undefined
  /**
   * A shell command, by words: `git status` matches only that, `git status *` also with any further words, or none. A `*` inside
   * a word stays inside it.
   */
  readonly command?: string | undefined
  /**
   * A glob for the paths that the arguments name, relative to the workspace or absolute: `src/**`. A rule that allows matches if
   * all of them fit, any other if one of them does.
   */
  readonly path?: string | undefined
  /** A host that the arguments name: `example.com`, `*.example.com` for all below it, `*` for any. As with `path`, all or one of them. */
  readonly host?: string | undefined
  /** The source of content that is in the arguments: a kind such as `web`, or one source: `server:github`. */
  readonly source?: string | undefined
  /** Globs for single arguments, by name; `*` stands for any characters. */
  readonly args?: Readonly<Record<string, string>> | undefined
  /** Name of the subagent that makes the call; `*` stands for any characters. The run at the top has no name. */
  readonly agent?: string | undefined
  /** The reason, for the person who is asked and, if the call is denied, for the model. */
  readonly note?: string | undefined
  /** A permission that a person gave: it answers a question that the other rules ask, and never lifts a deny. Made by `grant`. */
  readonly grant?: true | undefined
}

/** The conditions of a rule. */
export type Conditions = Pick<Rule, 'tool' | 'category' | 'command' | 'path' | 'host' | 'source' | 'args' | 'agent'>

const names = where(list(filledString, 'a list of names'), 'a list with at least one name', ({ length }) => length > 0)
const host = matching(/^[^\s/:@?#]+$|^\[[\da-f:.]+\]$/i, 'a host without a scheme, a port or a path')

const SHAPE = where(
  object<Rule>({
    id: optional(filledString),
    decision: oneOf('allow', 'ask', 'deny'),
    tool: optional(either(filledString, names)),
    category: optional(oneOf(...CATEGORIES)),
    command: optional(filledString),
    path: optional(filledString),
    host: optional(host),
    source: optional(filledString),
    args: optional(record(matching(/^/, 'a string'))),
    agent: optional(filledString),
    note: optional(filledString),
    grant: optional(oneOf(true)),
  }),
  'a rule; one with `grant` can only allow',
  (rule) => rule.grant !== true || rule.decision === 'allow',
)

/** A checked copy of rules. Throws `invalid_options` with the index and the field of the first problem. */
export function checkedRules(rules: readonly Rule[], name = 'the rules'): readonly Rule[] {
  return parse(list(SHAPE, 'a list of rules'), rules, name)
}

/**
 * Rules from JSON: a list, or an object with the list in `rules`, as a value or as its text.
 * @throws HarnessError `invalid_options` with the index of the rule and the field.
 */
export function fromJson(rules: string | JsonInput): readonly Rule[] {
  const given = typeof rules === 'string' ? parseRules(rules) : rules
  const inner: unknown = isObject(given) && 'rules' in given ? given['rules'] : given
  return checkedRules(inner as readonly Rule[])
}

function parseRules(text: string): unknown {
  const read = parseJson(text)
  if (!read.ok) throw new HarnessError('invalid_options', `Expected the rules to be JSON: ${read.problem}`)
  return read.value
}

/**
 * A permission that a person gave, as a rule: `grant({ tool: 'write' })`. It is plain JSON, so it can be stored.
 * @throws HarnessError `invalid_options` without any condition.
 */
export function grant(conditions: Conditions & Pick<Rule, 'id' | 'note'>): Rule {
  const [rule] = checkedRules([{ ...conditions, decision: 'allow', grant: true }], 'a grant')
  const { id, note, decision, grant: _grant, ...limits } = rule ?? {}
  if (rule === undefined || Object.keys(limits).length === 0)
    throw new HarnessError('invalid_options', 'Expected a grant to have a condition, such as `tool`, got none.')
  return rule
}
