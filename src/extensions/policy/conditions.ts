import type { Subject } from './call.js'
import { addressHost, hostPattern } from './hosts.js'
import { pathPattern, pathPlaces, foldCase } from './paths.js'
import type { Rule } from './rule.js'
import { commandPattern, fitsSurely, fitsWithStarter, mayFit } from './shell/command-pattern.js'
import type { ShellPart } from './shell/command-line.js'
import { mentionedPaths, wordPieces } from './shell/mentions.js'
import { canBe, expandedHome, fixedWord } from './shell/word.js'
import { matchesWildcard } from './wildcard.js'
import type { ShellWord } from './shell/word.js'

/** Whether a condition holds for a call; `maybe` if the call cannot be read well enough to say. */
export type Match = 'yes' | 'maybe' | 'no'

/** A condition about a call and, if the call runs a shell command, one of its parts. */
export type Condition = (subject: Subject, part: ShellPart | null) => Match

/** The conditions of a rule. A rule allows only calls that match with certainty; a rule that asks or denies matches more. */
export function ruleConditions(rule: Rule): readonly Condition[] {
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
