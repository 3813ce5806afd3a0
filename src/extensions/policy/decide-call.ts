import type { Subject } from './call-subject.js'
import { addressHost, hostPattern } from './argument-hosts.js'
import { pathPattern, pathPlaces, foldCase } from './argument-paths.js'
import type { Rule } from './rule.js'
import type { ShellPart } from './shell/command-line.js'
import { commandPattern, fitsSurely, fitsWithStarter, mayFit } from './shell/command-pattern.js'
import { mentionedPaths, wordPieces } from './shell/command-line.js'
import { canBe, expandedHome, fixedWord } from './shell/word.js'
import type { ShellWord } from './shell/word.js'
import { matchesWildcard } from './wildcard.js'

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
  /** A rule that speaks of this tool or command, or of every call, allows it. */
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
function findDenial(
  rules: readonly CompiledRule[],
  subject: Subject,
  parts: readonly (ShellPart | null)[],
): Ruling | null {
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
  const lifts = matching.some((each) => each.rule.decision === 'allow' && each.lifts)
  if (granted !== undefined) return { ...decidedBy(granted, 'grant'), lifts }
  if (best === undefined && part !== null && startsUnknown(part)) {
    const reason = 'the command has a word that can start any program.'
    return { decision: 'ask', by: null, step: 'command', reason, lifts }
  }
  return best === undefined ? { ...rulingWithoutRule(null, 'none'), lifts } : { ...decidedBy(best, 'rule'), lifts }
}

/** An option that starts a program which is not one of the words. */
function startsUnknown({ words: [first], starter }: ShellPart): boolean {
  return starter !== null && first?.isFixed === false && first.text === ''
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

/** A rule, prepared for many calls. */
export interface CompiledRule {
  readonly rule: Rule
  /** Its name in events. */
  readonly name: string
  /** The most specific condition: 3 a part of the arguments, 2 the tool, 1 the agent or the category, 0 none. */
  readonly specificity: 0 | 1 | 2 | 3
  /** It speaks of this tool, of this command or of every call, not of a kind of tools: it lifts `requiresApproval: true`. */
  readonly lifts: boolean
  match(subject: Subject, part: ShellPart | null): Match
}

export function compiledRule(rule: Rule, index: number): CompiledRule {
  const conditions = ruleConditions(rule)
  return {
    rule,
    name: rule.id ?? String(index + 1),
    specificity: ruleSpecificity(rule),
    lifts: rule.tool !== undefined || rule.command !== undefined || ruleSpecificity(rule) === 0,
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

/** Whether a condition holds for a call; `maybe` if the call cannot be read well enough to say. */
export type Match = 'yes' | 'maybe' | 'no'

/** A condition about a call and, if the call runs a shell command, one of its parts. */
export type Condition = (subject: Subject, part: ShellPart | null) => Match

/** The conditions of a rule. A rule allows only calls that match with certainty; a rule that asks or denies matches more. */
function ruleConditions(rule: Rule): readonly Condition[] {
  const allows = rule.decision === 'allow'
  const { tool, category, agent, command, path, host, source, args = {} } = rule
  return [
    ...(tool === undefined ? [] : [toolCondition(tool)]),
    ...(category === undefined ? [] : [whenSubject((subject) => subject.category === category)]),
    ...(agent === undefined ? [] : [agentCondition(agent)]),
    ...(source === undefined ? [] : [sourceCondition(source, allows)]),
    ...Object.entries(args).map(([name, glob]) => argumentCondition(name, glob, allows)),
    ...(command === undefined ? [] : [allows ? allowedCommand(command) : otherCommand(command)]),
    ...(path === undefined ? [] : [allows ? allowedPath(path) : otherPath(path)]),
    ...(host === undefined ? [] : [allows ? allowedHost(host) : otherHost(host)]),
  ]
}

function whenSubject(holds: (subject: Subject) => boolean): Condition {
  return (subject) => (holds(subject) ? 'yes' : 'no')
}

function toolCondition(tool: string | readonly string[]): Condition {
  const names = (typeof tool === 'string' ? [tool] : tool).map(matchesWildcard)
  return whenSubject((subject) => names.some((fits) => fits(subject.tool)))
}

function agentCondition(agent: string): Condition {
  const fits = matchesWildcard(agent)
  return whenSubject((subject) => subject.agent !== null && fits(subject.agent))
}

/** A kind of source has all of its sources below it; one without a name may be any of its kind. */
function sourceCondition(source: string, allows: boolean): Condition {
  const [kind = ''] = source.split(':', 1)
  const isBelow = (given: string): boolean =>
    given === source || given.startsWith(source.endsWith('/') ? source : `${source}${source === kind ? ':' : '/'}`)
  if (allows) return whenSubject(({ sources }) => sources.length > 0 && sources.every(isBelow))
  return whenSubject(({ sources }) => sources.some((given) => isBelow(given) || given === kind))
}

function argumentCondition(name: string, glob: string, allows: boolean): Condition {
  const fits = matchesWildcard(glob)
  return whenSubject(({ args }) => {
    const value = Object.hasOwn(args, name) ? args[name] : undefined
    if (value === undefined) return false
    if (!Array.isArray(value)) return fits(argumentText(value))
    const texts = (value as readonly unknown[]).map(argumentText)
    return allows ? texts.length > 0 && texts.every(fits) : texts.some(fits)
  })
}

function argumentText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function allowedCommand(command: string): Condition {
  const pattern = commandPattern(command)
  return ({ line }, part) => {
    if (line === null || part === null) return 'no'
    if (line.text === pattern.line) return 'yes'
    return fitsSurely(pattern, part.words) || fitsWithStarter(pattern, part) ? 'yes' : 'no'
  }
}

function otherCommand(command: string): Condition {
  const pattern = commandPattern(command)
  return ({ line }, part) => {
    if (line === null || part === null) return 'no'
    if (line.text === pattern.line) return 'yes'
    const forms = plainForms(part)
    if (forms.some((words) => fitsSurely(pattern, words))) return 'yes'
    return forms.some((words) => mayFit(pattern, words)) ? 'maybe' : 'no'
  }
}

/** Which files a shell command touches is not known. */
function allowedPath(path: string): Condition {
  const pattern = pathPattern(path, false)
  return ({ line, places }) => {
    if (line !== null) return 'no'
    return places.length > 0 && places.every((place) => pattern.fits(place)) ? 'yes' : 'no'
  }
}

function otherPath(path: string): Condition {
  const pattern = pathPattern(path, true)
  return ({ line, places, folder, surroundings }) => {
    if (places.some((place) => pattern.fits(place))) return 'yes'
    if (line === null) return 'no'
    let match: Match = 'no'
    for (const { text, folder: from, word } of mentionedPaths(line, folder)) {
      const named = pathPlaces(text, surroundings, from)
      if (named.some((place) => pattern.fits(place))) {
        if (word.isFixed) return 'yes'
        match = 'maybe'
      } else if (!word.isFixed && match === 'no' && (word.hasVariable || canBePath(word, pattern))) match = 'maybe'
    }
    return match
  }
}

/** True if a glob may stand for a path: the known part of its end agrees. */
function canBePath({ suffix }: { readonly suffix: string }, pattern: { readonly suffix: string }): boolean {
  return canBe(
    { text: '', isFixed: false, hasVariable: false, prefix: '', suffix: foldCase(suffix, true) },
    { prefix: '', suffix: pattern.suffix },
  )
}

/** Which hosts a shell command speaks to is not known. */
function allowedHost(host: string): Condition {
  const pattern = hostPattern(host)
  return ({ line, hosts }) => {
    if (line !== null) return 'no'
    return hosts.length > 0 && hosts.every((given) => given !== null && pattern.fits(given)) ? 'yes' : 'no'
  }
}

function otherHost(host: string): Condition {
  const pattern = hostPattern(host)
  return ({ line, hosts }) => {
    if (hosts.some((given) => given !== null && pattern.fits(given))) return 'yes'
    if (hosts.includes(null)) return 'maybe'
    if (line === null) return 'no'
    let match: Match = 'no'
    for (const word of line.parts.flatMap(({ words }) => words)) {
      const named = wordPieces(word)
        .filter((piece) => pattern.isLiteral || /[.:]/.test(piece))
        .map(addressHost)
      if (named.some((given) => given !== null && pattern.fits(given))) return 'yes'
      if (word.hasVariable) match = 'maybe'
    }
    return match
  }
}

/** The forms of a command for rules that ask or deny: without assignments, with the bare name of its program, without `~`. */
function plainForms({ words, program }: ShellPart): readonly (readonly ShellWord[])[] {
  const command = words.slice(program)
  const own = program > 0 && command.length > 0 ? [words, command] : [words]
  const forms = words.some(({ isInHome }) => isInHome) ? [...own, command.map(expandedHome)] : own
  const [name, ...args] = command
  if (name?.isFixed !== true) return forms
  const bare = name.text.slice(name.text.lastIndexOf('/') + 1)
  const names = new Set([bare, bare.toLowerCase()])
  names.delete(name.text)
  return [...forms, ...[...names].map((each) => [fixedWord(each), ...args])]
}
