import { homedir } from 'node:os'
import type { Assignment, Word, WordPart } from 'unbash'

/** A word of a command. */
export interface ShellWord {
  /** Without quotes. Of a word that is not fixed: as it is written. */
  readonly text: string
  /** It is this text whenever the command runs; else it has a variable, a glob or braces in it. */
  readonly isFixed: boolean
  /** It contains the value of a variable. */
  readonly hasVariable: boolean
  /** Fixed text at its beginning and end; all of it if it is fixed. */
  readonly prefix: string
  readonly suffix: string
  /** It begins with `~`, the home folder. */
  readonly isInHome?: boolean
}

export function fixedWord(text: string): ShellWord {
  return { text, isFixed: true, hasVariable: false, prefix: text, suffix: text }
}

/** Words that are not in the line, such as those that `xargs` reads: any number of any words. */
export const UNKNOWN_WORDS: ShellWord = { text: '', isFixed: false, hasVariable: true, prefix: '', suffix: '' }

export function shellWord(word: Word): ShellWord {
  const { parts, value, text } = word
  if (/^~(?!\/|$)/.test(text)) return { ...UNKNOWN_WORDS, text: value }
  const read = parts === undefined ? fixedWord(value) : joinParts(parts, value)
  return text.startsWith('~') ? { ...read, isInHome: true } : read
}

/** The word as the shell gives it to a program: `~/file` is in the home folder. */
export function expandedHome(word: ShellWord): ShellWord {
  if (word.isInHome !== true) return word
  const home = homedir()
  return { ...word, text: home + word.text.slice(1), prefix: home + word.prefix.slice(1), isInHome: false }
}

/** An assignment as the word that it is in the line: `A=b`. */
export function assignmentWord({ name, value, append, text }: Assignment): ShellWord {
  if (value.type === 'ArrayValue') return { ...UNKNOWN_WORDS, text }
  const start = `${name}${append === true ? '+=' : '='}`
  const word = shellWord(value)
  return { ...word, text: start + word.text, prefix: start + word.prefix }
}

/** The text of a part that is always the same; undefined for any other part. */
function fixedText(part: WordPart): string | undefined {
  if (part.type === 'Literal' || part.type === 'SingleQuoted' || part.type === 'AnsiCQuoted') return part.value
  if (part.type !== 'DoubleQuoted') return undefined
  const texts = part.parts.map(fixedText)
  return texts.every((text) => text !== undefined) ? texts.join('') : undefined
}

function joinParts(parts: readonly WordPart[], value: string): ShellWord {
  const texts = parts.map(fixedText)
  const first = texts.indexOf(undefined)
  if (first === -1) return fixedWord(texts.join(''))
  return {
    text: value,
    isFixed: false,
    hasVariable: parts.some((part, index) => texts[index] === undefined && part.type !== 'Glob'),
    prefix: texts.slice(0, first).join(''),
    suffix: texts.slice(texts.lastIndexOf(undefined) + 1).join(''),
  }
}

/** Whether a word that is not fixed can be a text that begins and ends like this. */
export function canBe(word: ShellWord, { prefix, suffix }: Pick<ShellWord, 'prefix' | 'suffix'>): boolean {
  return prefixesAgree(word.prefix, prefix) && prefixesAgree(reverseText(word.suffix), reverseText(suffix))
}

function prefixesAgree(left: string, right: string): boolean {
  return left.startsWith(right) || right.startsWith(left)
}

function reverseText(text: string): string {
  return Array.from(text).reverse().join('')
}
