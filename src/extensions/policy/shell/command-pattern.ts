import { matchesBetween } from '../wildcard.js'
import type { ShellPart } from './command-line.js'
import { canBe } from './word.js'
import type { ShellWord } from './word.js'

/** One word of a pattern. */
interface PatternWord {
  /** It has no `*`. */
  readonly isLiteral: boolean
  readonly prefix: string
  readonly suffix: string
  fits(text: string): boolean
}

/** The `command` of a rule. */
export interface CommandPattern {
  /** The whole of it, to be compared with a whole line. */
  readonly line: string
  readonly words: readonly PatternWord[]
  /** It ends in `*`: any further words fit. */
  readonly isOpen: boolean
}

/** A word: characters, escapes and quotes. */
const WORD = /(?:\\[^]|'[^']*'|"(?:[^"\\]|\\[^])*"|[^\s\\])+|\\$/g
const PIECE = /\\([^])|'([^']*)'|"((?:[^"\\]|\\[^])*)"|([^])/g

/** The `command` of a rule. Quotes and `\` in it are as in a shell. */
export function commandPattern(command: string): CommandPattern {
  const texts = command.match(WORD) ?? []
  const isOpen = texts.at(-1) === '*'
  return { line: command.trim(), words: (isOpen ? texts.slice(0, -1) : texts).map(patternWord), isOpen }
}

function patternWord(text: string): PatternWord {
  const pieces = ['']
  for (const [, escaped, single, double, plain] of text.matchAll(PIECE)) {
    if (plain === '*') pieces.push('')
    else pieces.push((pieces.pop() ?? '') + (escaped ?? single ?? double?.replace(/\\([$`"\\])/g, '$1') ?? plain ?? ''))
  }
  return {
    ...{ isLiteral: pieces.length === 1, prefix: pieces[0] ?? '', suffix: pieces.at(-1) ?? '' },
    fits: matchesBetween(pieces),
  }
}

/** The words of a command fit the pattern, whatever the words that are not fixed turn out to be. */
export function fitsSurely({ words, isOpen }: CommandPattern, given: readonly ShellWord[]): boolean {
  if (given.length < words.length || (!isOpen && given.length > words.length)) return false
  return words.every((word, index) => given[index]?.isFixed === true && word.fits(given[index].text))
}

/** The pattern that fits the outermost command says which inner command it starts. */
export function fitsWithStarter(pattern: CommandPattern, { starter }: ShellPart): boolean {
  if (starter === null || !fitsSurely(pattern, starter.part.words)) return false
  return starter.at.every((index) => pattern.words[index]?.isLiteral === true)
}

/** The words of a command may fit the pattern: a word that is not fixed can be any number of words. */
export function mayFit({ words, isOpen }: CommandPattern, given: readonly ShellWord[]): boolean {
  let reached = new Set([0])
  for (const word of given) {
    const next = new Set<number>()
    for (const at of reached) {
      if (at === words.length && isOpen) next.add(at)
      for (const to of word.isFixed ? oneFurther(words, at, word) : anyFurther(words, at, word)) next.add(to)
    }
    reached = next
  }
  return reached.has(words.length)
}

function oneFurther(words: readonly PatternWord[], at: number, given: ShellWord): readonly number[] {
  return words[at]?.fits(given.text) === true ? [at + 1] : []
}

/** A glob or braces stand for words of one form each; a variable for anything. */
function anyFurther(words: readonly PatternWord[], at: number, given: ShellWord): readonly number[] {
  const reached = [at]
  for (let index = at; index < words.length; index++) {
    const word = words[index]
    if (word === undefined || !(given.hasVariable || canBe(given, word))) break
    reached.push(index + 1)
  }
  return reached
}
