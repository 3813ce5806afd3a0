import { PatternError, toRe2 } from './dialect.js'
import type { PatternScope, Re2Source } from './dialect.js'

export interface PatternOptions {
  readonly scope: PatternScope
  /** The pattern is plain text. Default false: it is a regular expression. */
  readonly literal?: boolean
  /** Default true. */
  readonly caseSensitive?: boolean
}

/** A pattern that is ready to run. Its running time is proportional to the text, whatever the pattern. */
export interface Pattern {
  /** Bytes that occur in every match, if any are known. */
  readonly literal: Buffer | undefined
  /** Most work per byte. Comparable between patterns; `MAX_WORK` takes about a second. */
  readonly weight: number
  /** Longest text that is searched completely, in bytes or UTF-16 units; of a longer one, only the beginning is. */
  readonly reach: number
  /** True if there is a match. Bytes are read as UTF-8; invalid ones count as U+FFFD. */
  test(text: Buffer | string): boolean
}

type PatternResult = { readonly ok: true; readonly pattern: Pattern } | { readonly ok: false; readonly problem: string }

export const MAX_PATTERN_CHARS = 10_000
/** Most work of one test: it cannot be interrupted. */
const MAX_WORK = 50_000_000
/** Cost of a byte in addition to the program's instructions that it may visit. */
const BASE_WEIGHT = 100
const MAX_PROBLEM_CHARS = 200

/**
 * Compiles a regular expression for `re2js`, which runs in linear time, so that no pattern of a model can hang. There is no
 * look-around, and there are no backreferences. The dialect is ripgrep's as far as RE2 can express it; `\b` is ASCII only.
 */
export async function compilePattern(text: string, options: PatternOptions): Promise<PatternResult> {
  if (text.length > MAX_PATTERN_CHARS) {
    return { ok: false, problem: `the pattern is longer than ${MAX_PATTERN_CHARS} characters` }
  }
  const { scope, literal = false, caseSensitive = true } = options
  try {
    const re2 = toRe2(literal ? escapeLiteral(text) : text, scope)
    return {
      ok: true,
      pattern: caseSensitive && re2.isLiteral ? plainPattern(re2.literal) : await compiled(re2, caseSensitive),
    }
  } catch (error) {
    if (error instanceof PatternError) return { ok: false, problem: error.message }
    throw error
  }
}

/** A regular expression that matches `text`. */
export function escapeLiteral(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, '\\$&')
}

function plainPattern(text: string): Pattern {
  const literal = Buffer.from(text)
  return { literal, weight: 1, reach: Infinity, test: (subject) => subject.includes(text) }
}

async function compiled({ source, literal }: Re2Source, caseSensitive: boolean): Promise<Pattern> {
  const { RE2JS, RE2JSException } = await import('re2js')
  try {
    const program = RE2JS.compile(source, caseSensitive ? 0 : RE2JS.CASE_INSENSITIVE)
    const weight = program.programSize() + BASE_WEIGHT
    const reach = Math.floor(MAX_WORK / weight)
    return {
      literal: caseSensitive && literal !== '' ? Buffer.from(literal) : undefined,
      weight,
      reach,
      test: (text) => program.test(typeof text === 'string' ? text.slice(0, reach) : text.subarray(0, reach)),
    }
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    const problem = error.message.replace(/^error parsing regexp: /, '').replace('`(?i)', '`')
    throw new PatternError(problem.slice(0, MAX_PROBLEM_CHARS))
  }
}
