import { innerCommands, programName } from './inner-commands.js'
import { assignmentWord, shellWord } from './word.js'
import type { ShellWord } from './word.js'
import { forEachChild, parse } from 'unbash'
import type { Command, ParsedScript, SyntaxNode } from 'unbash'

/** One command of a line: its program and arguments. */
export interface ShellPart {
  /** Assignments before the program come first. Empty if nothing is known of it. */
  readonly words: readonly ShellWord[]
  /** Index of the program. */
  readonly program: number
  /** The command that starts it: the words of that command that say so must be fixed by the rule that allows both. */
  readonly starter: { readonly part: ShellPart; readonly at: readonly number[] } | null
}

/** A shell command, taken apart. */
export interface CommandLine {
  readonly text: string
  /** Every command in it, also those inside of others; at least one. */
  readonly parts: readonly ShellPart[]
  /** Files that are redirected to or from. */
  readonly files: readonly ShellWord[]
  /** The reason why the line does more than its parts say, or something else; null if it does not. */
  readonly unclear: string | null
}

const MAX_CHARS = 100_000
const MAX_DEPTH = 20
const MAX_PARTS = 1_000

/** Takes a shell command apart. */
export function commandLine(text: string): CommandLine {
  const reader = new Reader()
  reader.script(text)
  const parts = reader.parts.length === 0 ? [{ words: [], program: 0, starter: null }] : reader.parts
  return { text: text.trim(), parts, files: reader.files, unclear: reader.unclear }
}

/** A command that is not a line, but a list of words. */
export function commandOfWords(words: readonly ShellWord[]): CommandLine {
  const reader = new Reader()
  reader.command(words, 0, null)
  return { text: words.map((word) => word.text).join(' '), parts: reader.parts, files: [], unclear: reader.unclear }
}

/** Collects the commands of a line, and the first thing in it that is unclear. */
class Reader {
  readonly parts: ShellPart[] = []
  readonly files: ShellWord[] = []
  unclear: string | null = null
  #depth = 0

  script(text: string, starter: ShellPart['starter'] = null): void {
    if (text.length > MAX_CHARS || text.includes('\0')) return this.#doubt('is too long, or not text')
    this.#parsed(parse(text), starter)
  }

  command(words: readonly ShellWord[], program: number, starter: ShellPart['starter']): void {
    const part: ShellPart = { words, program, starter }
    this.parts.push(part)
    if (this.parts.length > MAX_PARTS || this.#depth > MAX_DEPTH) return this.#doubt('is too long')
    this.#depth++
    const inner = innerCommands(words.slice(program))
    if (inner.unclear !== null) this.#doubt(inner.unclear)
    for (const { words: own, script, at } of inner.commands) {
      const from = startedBy(part, at)
      if (script !== null) this.script(script, from)
      else this.command(own, 0, from)
    }
    this.#depth--
  }

  #parsed(script: ParsedScript, starter: ShellPart['starter']): void {
    if (script.errors !== undefined && script.errors.length > 0) this.#doubt('cannot be parsed')
    this.#depth++
    if (this.#depth > MAX_DEPTH) this.#doubt('is nested too deeply')
    else forEachChild(script, (child) => this.#visit(child, starter))
    this.#depth--
  }

  #visit(node: SyntaxNode, starter: ShellPart['starter']): void {
    const doubt = doubtAbout(node)
    if (doubt !== null) this.#doubt(doubt)
    if (node.type === 'Script') return this.#parsed(node, starter)
    if (node.type === 'Redirect' && node.target !== undefined) this.files.push(shellWord(node.target))
    if (node.type === 'Command') this.#command(node, starter)
    forEachChild(node, (child) => this.#visit(child, starter))
  }

  #command({ name, prefix, args }: Command, starter: ShellPart['starter']): void {
    const assignments = prefix.flatMap((each) => (each.type === 'Assignment' ? [assignmentWord(each)] : []))
    const words = args.map((each) => (each.type === 'Assignment' ? assignmentWord(each) : shellWord(each)))
    if (name === undefined) {
      if (assignments.length > 0) this.parts.push({ words: assignments, program: assignments.length, starter })
      return
    }
    const program = shellWord(name)
    if (!program.isFixed) this.#doubt('does not say which program it runs')
    this.command([...assignments, program, ...words], assignments.length, starter)
  }

  #doubt(reason: string): void {
    this.unclear ??= reason
  }
}

/** The place of an inner command, in the words of the outermost one. */
function startedBy(part: ShellPart, at: readonly number[]): ShellPart['starter'] {
  const places = at.map((index) => index + part.program)
  if (part.starter === null) return { part, at: places }
  // Words of a command that was itself taken from a list of words are words of the outer one, further on.
  const [first] = part.words
  const offset = first === undefined ? -1 : part.starter.part.words.indexOf(first)
  return offset === -1 ? part.starter : { part: part.starter.part, at: places.map((index) => index + offset) }
}

const SUBSTITUTION = 'has a substitution'
const REDIRECTION = 'has a redirection'
const ARITHMETIC = 'has arithmetic'
const ARRAY = 'has an array'
const RARE = 'has a rare form of quotes or patterns'
const REDEFINITION = 'gives a new meaning to a name'

/** Syntax that can do more than the commands in it say. */
const DOUBTS: Partial<Record<SyntaxNode['type'], string>> = {
  CommandExpansion: SUBSTITUTION,
  ProcessSubstitution: SUBSTITUTION,
  ArithmeticCommandExpansion: SUBSTITUTION,
  Redirect: REDIRECTION,
  HereDoc: REDIRECTION,
  HereString: REDIRECTION,
  ArithmeticExpansion: ARITHMETIC,
  ArithmeticCommand: ARITHMETIC,
  ArithmeticFor: ARITHMETIC,
  ArrayValue: ARRAY,
  ExtendedGlob: RARE,
  LocaleString: RARE,
  Function: REDEFINITION,
  Coproc: REDEFINITION,
}

const EVALUATING_TESTS: ReadonlySet<string> = new Set(['-v', '-R', '-eq', '-ne', '-lt', '-le', '-gt', '-ge'])

/**
 * The reason why a piece of shell syntax can do more than the commands in it say; null if it cannot. The shell evaluates
 * arithmetic, subscripts and some expansions again, so that text in them can be a command.
 */
function doubtAbout(node: SyntaxNode): string | null {
  if (node.type === 'ParameterExpansion') {
    const isPlain = node.operation === undefined && node.index === undefined && node.prefix === undefined
    return isPlain ? null : 'has an expansion with an operator'
  }
  if (node.type === 'Assignment') return node.index === undefined ? null : ARRAY
  if (node.type === 'TestUnary' || node.type === 'TestBinary')
    return EVALUATING_TESTS.has(node.operator) ? ARITHMETIC : null
  return DOUBTS[node.type] ?? null
}

/** A string in a command that may be a path, and the folder that it is relative to. */
export interface Mention {
  readonly text: string
  readonly folder: string
  readonly word: ShellWord
}

/** The strings in the words of a command line that may name something: whole words, and pieces of them. */
export function mentionedPaths(line: CommandLine, folder: string): readonly Mention[] {
  const folders = lineFolders(line, folder)
  const words = new Set([...line.parts.flatMap(({ words: all }) => all), ...line.files])
  return [...words].flatMap((word) =>
    wordPieces(word).flatMap((text) => folders.map((from) => ({ text, folder: from, word }))),
  )
}

/** `--file=.env`, `-f.env`, `@.env`, `open('.env')`: a word, and the pieces of it that may be names. */
export function wordPieces({ text }: ShellWord): readonly string[] {
  const pieces = text.split(/[\s'"`()[\]{},;=:@<>|&]+/)
  const option = /^-[A-Za-z](.+)$/.exec(text)?.[1]
  return [...new Set([text, ...pieces, ...(option === undefined ? [] : [option])])].filter((piece) => piece !== '')
}

/** The folder in which a line begins, and those that it changes to. */
function lineFolders({ parts }: CommandLine, folder: string): readonly string[] {
  const folders = [folder]
  for (const { words, program } of parts) {
    const name = programName(words[program])
    const target = words.slice(program + 1).find(({ text }) => !text.startsWith('-'))
    if ((name !== 'cd' && name !== 'pushd') || target === undefined || folders.length >= 8) continue
    folders.push(
      target.text.startsWith('/') || target.text.startsWith('~')
        ? target.text
        : `${folders.at(-1) ?? '.'}/${target.text}`,
    )
  }
  return folders
}
