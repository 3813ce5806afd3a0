import { ALL, complement, fromSource, single, withoutLineBreaks } from './char-set.js'
import type { CharSet } from './char-set.js'
import { Cursor } from './cursor.js'
import { codePointOf, parseEscape, setOf } from './escape.js'
import { parseClass } from './parse-class.js'
import type { Assertion, PatternFlags, PatternNode, PatternScope } from './syntax.js'

const MAX_DEPTH = 200
const MAX_REPETITIONS_IN_A_ROW = 5
const EMPTY: PatternNode = { kind: 'empty' }

/**
 * Reads a regular expression in the dialect of ripgrep (Rust's `regex`), which has neither look-around nor
 * backreferences. Not taken: `(?x)`, `(?-u)`, and in lines whatever could only match a line break.
 * @throws PatternError that says what is wrong, and where.
 */
export function parsePattern(text: string, scope: PatternScope, ignoreCase: boolean): PatternNode {
  const inLines = scope === 'line'
  const parser = new Parser(new Cursor(text), scope, { ignoreCase, multiLine: inLines, dotAll: false, crlf: inLines })
  return parser.parse()
}

class Parser {
  readonly #cursor: Cursor
  readonly #scope: PatternScope
  readonly #names = new Set<string>()
  #flags: PatternFlags
  #depth = 0

  constructor(cursor: Cursor, scope: PatternScope, flags: PatternFlags) {
    this.#cursor = cursor
    this.#scope = scope
    this.#flags = flags
  }

  parse(): PatternNode {
    const node = this.#choice()
    if (!this.#cursor.atEnd) throw this.#cursor.error('a `)` closes no group')
    return node
  }

  #choice(): PatternNode {
    const options = [this.#sequence()]
    while (this.#cursor.eat('|')) options.push(this.#sequence())
    const [only] = options
    return options.length === 1 && only !== undefined ? only : { kind: 'choice', options }
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = []
    while (!this.#cursor.atEnd && this.#cursor.peek() !== '|' && this.#cursor.peek() !== ')') {
      const atom = this.#atom()
      parts.push(atom === undefined ? this.#flagsAlone() : this.#repeated(atom))
    }
    const [only] = parts
    return parts.length === 1 && only !== undefined ? only : { kind: 'sequence', parts }
  }

  /** Behind `(?i)` nothing may be repeated. */
  #flagsAlone(): PatternNode {
    if (/[*+?{]/.test(this.#cursor.peek())) throw this.#cursor.error('a repetition follows nothing')
    return EMPTY
  }

  #repeated(atom: PatternNode): PatternNode {
    let node = atom
    for (let count = 0; ; count++) {
      const bounds = this.#bounds()
      if (bounds === undefined) return node
      if (count >= MAX_REPETITIONS_IN_A_ROW) throw this.#cursor.error('too many repetitions in a row')
      this.#cursor.eat('?')
      node = { kind: 'repeat', part: node, ...bounds }
    }
  }

  #bounds(): { readonly min: number; readonly max: number } | undefined {
    if (this.#cursor.eat('*')) return { min: 0, max: Infinity }
    if (this.#cursor.eat('+')) return { min: 1, max: Infinity }
    if (this.#cursor.eat('?')) return { min: 0, max: 1 }
    if (!this.#cursor.eat('{')) return undefined
    const text = this.#cursor.takeUntil('}', 'a `}` after a number of repetitions')
    const [, low, comma, high] = /^\s*([0-9]{1,9})\s*(,?)\s*([0-9]{0,9})\s*$/.exec(text) ?? []
    if (low === undefined || (comma === '' && high !== '')) {
      throw this.#cursor.error('a repetition in braces is written {n}, {n,} or {n,m}')
    }
    const min = Number(low)
    const max = comma === '' ? min : high === '' ? Infinity : Number(high)
    if (min > max) throw this.#cursor.error('the bounds of a repetition run backwards')
    return { min, max }
  }

  /** `undefined` for flags such as `(?i)`, which match nothing and hold to the end of the group. */
  #atom(): PatternNode | undefined {
    const char = this.#cursor.take('an expression')
    switch (char) {
      case '(':
        return this.#group()
      case '[':
        return this.#set(parseClass(this.#cursor, this.#flags.ignoreCase))
      case '\\':
        return this.#escape()
      case '.':
        return this.#set(this.#dot())
      case '^':
        return this.#anchor('line_start', 'crlf_line_start', 'text_start')
      case '$':
        return this.#anchor('line_end', 'crlf_line_end', 'text_end')
      case '*':
      case '+':
      case '?':
      case '{':
        throw this.#cursor.error('a repetition follows nothing')
      default:
        return this.#set(single(codePointOf(char), this.#flags.ignoreCase))
    }
  }

  #dot(): CharSet {
    if (this.#flags.dotAll) return ALL
    return complement(fromSource(this.#flags.crlf ? '\\r\\n' : '\\n'))
  }

  #anchor(line: Assertion, crlf: Assertion, text: Assertion): PatternNode {
    const { multiLine, crlf: isCrlf } = this.#flags
    return { kind: 'assertion', assertion: multiLine ? (isCrlf ? crlf : line) : text }
  }

  #escape(): PatternNode {
    const escape = parseEscape(this.#cursor, this.#flags.ignoreCase)
    if (escape.kind !== 'assertion') return this.#set(setOf(escape, this.#flags.ignoreCase))
    const { assertion } = escape
    if (this.#scope === 'line' && (assertion === 'text_start' || assertion === 'text_end')) {
      throw this.#cursor.error('each line is searched by itself: write `^` and `$` for its ends')
    }
    return { kind: 'assertion', assertion }
  }

  #set(set: CharSet): PatternNode {
    if (this.#scope === 'text') return { kind: 'set', set }
    const inLine = withoutLineBreaks(set)
    if (inLine === undefined)
      throw this.#cursor.error('each line is searched by itself: no match can hold a line break')
    return { kind: 'set', set: inLine }
  }

  #group(): PatternNode | undefined {
    if (++this.#depth > MAX_DEPTH) throw this.#cursor.error(`groups are nested deeper than ${MAX_DEPTH}`)
    const outer = this.#flags
    if (this.#cursor.eat('?') && !this.#name()) {
      const end = this.#switchFlags()
      if (end === ')') {
        this.#depth--
        return undefined
      }
    }
    const node = this.#choice()
    if (!this.#cursor.eat(')')) throw this.#cursor.error('a group is not closed')
    this.#flags = outer
    this.#depth--
    return node
  }

  /** The name of a group, behind `(?`; what only looks like one is refused by its own name. */
  #name(): boolean {
    const next = this.#cursor.peek()
    const behind = this.#cursor.peek(1)
    if (next === '=' || next === '!' || (next === '<' && (behind === '=' || behind === '!'))) {
      throw this.#cursor.error('look-around is not supported')
    }
    if (next === '>') throw this.#cursor.error('atomic groups are not supported')
    if (!this.#cursor.eat('P<') && !this.#cursor.eat('<')) return false
    const name = this.#cursor.takeUntil('>', 'a `>` after the name of a group')
    if (!/^[_\p{Alphabetic}][\w.[\]\p{Alphabetic}\p{N}]*$/u.test(name)) {
      throw this.#cursor.error('the name of a group must begin with a letter or `_`')
    }
    if (this.#names.has(name)) throw this.#cursor.error('two groups have the same name')
    this.#names.add(name)
    return true
  }

  /** Reads flags up to `:` or `)`, which is returned. */
  #switchFlags(): ':' | ')' {
    const seen = new Set<string>()
    let on = true
    let last = ''
    for (;;) {
      const char = this.#cursor.take('a `)`')
      if (char === ':' || char === ')') {
        if (last === '-' || (char === ')' && last === '')) throw this.#cursor.error('flags are missing in `(?…)`')
        return char
      }
      if (seen.has(char)) throw this.#cursor.error(`the flag \`${char}\` is given twice`)
      seen.add(char)
      if (char === '-') on = false
      else this.#switch(char, on)
      last = char
    }
  }

  #switch(flag: string, on: boolean): void {
    const isFixed = this.#scope === 'line' && !on && (flag === 'm' || flag === 'R')
    if (isFixed || (flag === 'u' && !on)) throw this.#cursor.error(`the flag \`${flag}\` cannot be switched off here`)
    switch (flag) {
      case 'i':
        this.#flags = { ...this.#flags, ignoreCase: on }
        return
      case 'm':
        this.#flags = { ...this.#flags, multiLine: on }
        return
      case 's':
        this.#flags = { ...this.#flags, dotAll: on }
        return
      case 'R':
        this.#flags = { ...this.#flags, crlf: on }
        return
      case 'u':
      case 'U':
        // Unicode is always on, and greed does not decide whether something matches.
        return
      default:
        throw this.#cursor.error(`\`(?${flag.slice(0, 10)}\` is not supported`)
    }
  }
}
