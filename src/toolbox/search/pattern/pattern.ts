import { requiredLiteral } from './literal.js'
import type { RequiredLiteral } from './literal.js'
import { Matcher, NOT_FOUND } from './matcher.js'
import type { Paused } from './matcher.js'
import { parsePattern } from './parse.js'
import { compileProgram } from './program.js'
import { PatternError } from './syntax.js'
import type { PatternScope } from './syntax.js'

export interface PatternOptions {
  readonly scope: PatternScope
  /** The text is to be found as it is. Default false: it is a regular expression. */
  readonly literal?: boolean
  /** Default true. */
  readonly caseSensitive?: boolean
}

/** A pattern that is ready to run. Its running time is proportional to the text, whatever the pattern. */
/** A pattern that is ready to run. Its running time is proportional to the text, whatever the pattern. */
export interface Pattern {
  /** The regular expression in ripgrep's dialect; of a literal, the escaped text. */
  readonly source: string
  readonly caseSensitive: boolean
  /** Bytes that are in every match, if there are any. */
  readonly literal: Buffer | undefined
  /**
   * The first place from `from` to `to` at which it is certain that a match has ended: at the latest the character
   * behind it. `NOT_FOUND` without a match. `Paused` after a few milliseconds: give it back as `paused` to go on.
   */
  find(bytes: Buffer, from: number, to: number, paused?: Paused): number | Paused
  /** Whether there is a match in `text`. `onPause` is called every few milliseconds, and may throw. */
  test(text: string, onPause: () => void): boolean
}

type PatternResult = { readonly ok: true; readonly pattern: Pattern } | { readonly ok: false; readonly problem: string }

const MAX_PATTERN_CHARS = 10_000
const LF = 0x0a

/**
 * Compiles a regular expression in the dialect of ripgrep. It runs in linear time: there is no look-around, there are no
 * backreferences, and nothing that a model writes can hang.
 */
export function compilePattern(text: string, options: PatternOptions): PatternResult {
  if (text.length > MAX_PATTERN_CHARS) {
    return { ok: false, problem: `the pattern is longer than ${MAX_PATTERN_CHARS} characters` }
  }
  const source = options.literal === true ? escapeLiteral(text) : text
  const caseSensitive = options.caseSensitive ?? true
  try {
    const node = parsePattern(source, options.scope, !caseSensitive)
    const matcher = new Matcher(compileProgram(node))
    return {
      ok: true,
      pattern: new CompiledPattern(source, options.scope, caseSensitive, matcher, requiredLiteral(node)),
    }
  } catch (error) {
    if (error instanceof PatternError) return { ok: false, problem: error.message }
    throw error
  }
}

function escapeLiteral(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, '\\$&')
}

class CompiledPattern implements Pattern {
  readonly source: string
  readonly caseSensitive: boolean
  readonly literal: Buffer | undefined
  readonly #scope: PatternScope
  readonly #matcher: Matcher
  readonly #isLiteral: boolean

  constructor(
    source: string,
    scope: PatternScope,
    caseSensitive: boolean,
    matcher: Matcher,
    literal: RequiredLiteral | undefined,
  ) {
    this.source = source
    this.caseSensitive = caseSensitive
    this.#scope = scope
    this.#matcher = matcher
    this.literal = literal === undefined ? undefined : Buffer.from(literal.text)
    this.#isLiteral = literal?.isWhole === true
  }

  find(bytes: Buffer, from: number, to: number, paused?: Paused): number | Paused {
    if (this.literal === undefined || this.#scope === 'text') return this.#matcher.find(bytes, from, to, paused)
    return this.#findByLiteral(this.literal, bytes, from, to, paused)
  }

  test(text: string, onPause: () => void): boolean {
    const bytes = Buffer.from(text)
    if (this.literal !== undefined && !bytes.includes(this.literal)) return false
    if (this.#isLiteral) return true
    let found = this.#matcher.find(bytes, 0, bytes.length)
    while (typeof found !== 'number') {
      onPause()
      found = this.#matcher.find(bytes, 0, bytes.length, found)
    }
    return found !== NOT_FOUND
  }

  /** Looks only at lines that hold `literal`, which the machine finds many times faster than an automaton does. */
  #findByLiteral(literal: Buffer, bytes: Buffer, from: number, to: number, paused?: Paused): number | Paused {
    let open = paused
    for (let at = open?.at ?? from; ;) {
      if (open === undefined) {
        at = bytes.indexOf(literal, at)
        if (at === NOT_FOUND || at + literal.length > to) return NOT_FOUND
        if (this.#isLiteral) return at + literal.length
      }
      const start = at === 0 ? from : Math.max(from, bytes.lastIndexOf(LF, at - 1) + 1)
      const lineEnd = bytes.indexOf(LF, at)
      const end = lineEnd === -1 || lineEnd > to ? to : lineEnd
      const found = this.#matcher.find(bytes, start, end, open)
      if (found !== NOT_FOUND) return found
      open = undefined
      at = end
    }
  }
}
