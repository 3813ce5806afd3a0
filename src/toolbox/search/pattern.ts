import type { CallTime } from '../workspace/call-time.js'

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
  /** The beginnings and ends of the first matches in a text that has one. */
  places(text: string): readonly MatchPlace[]
}

export type MatchPlace = readonly [start: number, end: number]

/** Matches of one line that are counted. */
const MOST_PLACES = 100

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
      pattern: caseSensitive && re2.isLiteral ? plainPattern(re2.literal) : await re2Pattern(re2, caseSensitive),
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
  return {
    ...{ literal, weight: 1, reach: Infinity },
    test: (subject) => subject.includes(text),
    places(subject) {
      const found: MatchPlace[] = []
      for (let at = subject.indexOf(text); at !== -1; at = subject.indexOf(text, at + Math.max(1, text.length))) {
        if (found.push([at, at + text.length]) >= MOST_PLACES) break
      }
      return found
    },
  }
}

async function re2Pattern({ source, literal }: Re2Source, caseSensitive: boolean): Promise<Pattern> {
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
      places(text) {
        const matcher = program.matcher(text.slice(0, reach))
        // Each search may run through the whole text: together they have the work of a few.
        const most = Math.max(1, Math.min(MOST_PLACES, Math.floor((4 * reach) / Math.max(1, text.length))))
        const found: MatchPlace[] = []
        while (found.length < most && matcher.find()) found.push([matcher.start(), matcher.end()])
        return found
      },
    }
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    const problem = error.message.replace(/^error parsing regexp: /, '').replace('`(?i)', '`')
    throw new PatternError(problem.slice(0, MAX_PROBLEM_CHARS))
  }
}

/** A string is not a valid pattern. The message is one line for the model. */
class PatternError extends Error {
  override readonly name = 'PatternError'
}

/**
 * The subject of a pattern. `line`: one line of a file, without its line end. `text`: a whole string, including line
 * breaks; `^` and `$` match its ends unless `(?m)` is on.
 */
export type PatternScope = 'line' | 'text'

export interface Re2Source {
  /** In the syntax of RE2. */
  readonly source: string
  /** The longest string that is known to occur in every match, if case matters; empty if none is known. */
  readonly literal: string
  /** The pattern is `literal` and nothing else. */
  readonly isLiteral: boolean
}

/** Escapes, quantifiers in braces, the beginning of a class, constructs that RE2 and ripgrep read differently; else one character. */
const TOKEN =
  /\\(?:[pP](?:\{[^}]*\}|[^])|[xuU]\{[^}]*\}|u[\dA-Fa-f]{4}|U[\dA-Fa-f]{8}|x[\dA-Fa-f]{2}|[^])|\[:\^?\w+:\]|\[\^?\]?|\{\d+(?:,\d*)?\}|\(\?<?[=!]|&&|--|~~|[^]/gu

const WORD = '\\p{L}\\p{M}\\p{Nd}\\p{Pc}'
/** Every general category that is not in `WORD`: RE2 has no complement inside a class. */
const NON_WORD = '\\p{Z}\\p{S}\\p{C}\\p{Cn}\\p{Pd}\\p{Ps}\\p{Pe}\\p{Pi}\\p{Pf}\\p{Po}\\p{Nl}\\p{No}'
const SPACE = '\\t-\\r \\x{85}\\p{Z}'
/** Space characters beyond ASCII: U+0085, U+00A0, U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F, U+3000. */
const NON_SPACE =
  '\\x00-\\x08\\x0e-\\x1f!-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}' +
  '\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}'

/** Members of the classes that are ASCII in RE2 and Unicode in ripgrep. */
const CLASSES: Readonly<Partial<Record<string, string>>> = {
  '\\w': WORD,
  '\\W': NON_WORD,
  '\\d': '\\p{Nd}',
  '\\D': '\\P{Nd}',
  '\\s': SPACE,
  '\\S': NON_SPACE,
}

/** Special characters outside a class. */
const META = /^[.*+?()|^$]$/

/**
 * Translates a regular expression from ripgrep's dialect to RE2's, as far as both can express it.
 * @throws PatternError for constructs that are not supported, or that RE2 would silently read differently.
 */
function toRe2(pattern: string, scope: PatternScope): Re2Source {
  const literals = new Literals()
  const tokens = pattern.match(TOKEN) ?? []
  let source = ''
  let inClass = false
  let before = ''
  for (const [index, token] of tokens.entries()) {
    refuseToken(token, { before, inClass, scope })
    const members = CLASSES[token]
    if (token === '\\b' && !inClass) source += wordBoundary(tokens, index)
    else source += members === undefined ? codePointEscape(token) : inClass ? members : `[${members}]`
    if (!inClass) literals.add(token)
    if (inClass ? token === ']' : /^\[(?!:)/.test(token)) inClass = !inClass
    before = token
  }
  return { source, ...literals.found() }
}

/** `\b` is ASCII in RE2. Next to another letter it becomes the end of the text, or a character that is not of a word. */
function wordBoundary(tokens: readonly string[], index: number): string {
  const before = tokens.slice(0, index).findLast((token) => token !== ')')
  const after = tokens.slice(index + 1).find((token) => !/^[(?:]$/.test(token))
  if (OTHER_WORD.test(after ?? '')) return `(?:^|[${NON_WORD}])`
  if (OTHER_WORD.test(before ?? '')) return `(?:$|[${NON_WORD}])`
  return '\\b'
}

const OTHER_WORD = /^(?!\p{ASCII})[\p{L}\p{M}\p{Nd}\p{Pc}]$/u

interface Place {
  readonly before: string
  readonly inClass: boolean
  readonly scope: PatternScope
}

function refuseToken(token: string, { before, inClass, scope }: Place): void {
  if (inClass) {
    if (/^(?:\[(?!:)|&&|--|~~)/.test(token)) {
      throw new PatternError(
        `\`${token}\` cannot stand in \`[…]\`: nested classes and set operations are not supported; write \`\\\` before a literal character`,
      )
    }
    return
  }
  if (/^\(\?<?[=!]/.test(token)) throw new PatternError('look-around is not supported')
  if (/^\\[0-9]/.test(token)) throw new PatternError('backreferences are not supported')
  if (token === '\\Q') throw new PatternError('`\\Q` is not supported')
  if (token === '\\<' || token === '\\>') {
    throw new PatternError(`\`${token}\` is not supported: write \`\\b\` for a word boundary`)
  }
  if (before === '\\b' && token === '{') throw new PatternError('`\\b{…}` is not supported: write `\\b`')
  if (scope === 'line' && (token === '\\n' || token === '\n')) {
    throw new PatternError('lines are searched one by one: no match can contain a line break')
  }
}

/** `\u` and `\U` are unknown to RE2. */
function codePointEscape(token: string): string {
  const [, digits] = /^\\[uU]\{?([\dA-Fa-f]+)\}?$/.exec(token) ?? []
  return digits === undefined ? token : `\\x{${digits}}`
}

/** Collects the strings that occur in every match. Groups and alternatives may be absent from a match, so they end the search. */
class Literals {
  readonly #runs: string[] = ['']
  #isUnknown = false

  add(token: string): void {
    if (token === '(' || token === '|' || token.startsWith('(?')) this.#isUnknown = true
    const last = this.#runs.length - 1
    const run = this.#runs[last] ?? ''
    if (/^(?:[*?]|\{\d.*)$/.test(token)) this.#runs.splice(last, 1, run.replace(/[^]$/u, ''), '')
    else if (/^\\[!-/:-@[-`{-~]$/.test(token)) this.#runs[last] = run + token.slice(1)
    else if (META.test(token) || /^(?:\\|\[)/.test(token)) this.#runs.push('')
    else this.#runs[last] = run + token
  }

  found(): Pick<Re2Source, 'literal' | 'isLiteral'> {
    if (this.#isUnknown) return { literal: '', isLiteral: false }
    const literal = this.#runs.reduce((best, run) => (run.length > best.length ? run : best))
    return { literal, isLiteral: this.#runs.length === 1 && literal !== '' }
  }
}

const LF = 0x0a
const CR = 0x0d
/** Work between two checks of the time: see `Pattern.weight`. */
const WORK_BETWEEN_BREATHS = 500_000
/** Cost of a line in addition to its bytes. */
const LINE_BYTES = 32

/** A line of a block that matches. */
export interface MatchingLine {
  readonly start: number
  /** Before its line feed. */
  readonly end: number
  /** Lines of the block before it. */
  readonly before: number
}

export interface LineSearch {
  readonly pattern: Pattern
  readonly time: CallTime
  /** Returns `false` to end the search. */
  readonly onLine: (line: MatchingLine) => boolean
  /** Called for a line that is too long to be searched completely. */
  readonly onCut: () => unknown
}

/** Finds the matching lines of a block. LF ends a line, and a CR before it is not part of it. True if `onLine` ended the search. */
export async function eachMatchingLine(bytes: Buffer, { pattern, time, onLine, onCut }: LineSearch): Promise<boolean> {
  const { literal, weight, reach } = pattern
  let before = 0
  let counted = 0
  let work = 0
  for (let at = 0; at < bytes.length;) {
    const place = literal === undefined ? at : bytes.indexOf(literal, at)
    if (place === -1) return false
    const start = place === at ? at : Math.max(at, bytes.lastIndexOf(LF, place) + 1)
    const lineFeed = bytes.indexOf(LF, place)
    const end = lineFeed === -1 ? bytes.length : lineFeed
    const text = bytes.subarray(start, end > start && bytes[end - 1] === CR ? end - 1 : end)
    if (text.length > reach) onCut()
    if (pattern.test(text)) {
      before += lineFeeds(bytes, counted, start)
      counted = start
      if (!onLine({ start, end, before })) return true
    }
    work += weight * (LINE_BYTES + text.length)
    if (work > WORK_BETWEEN_BREATHS) {
      work = 0
      await time.breathe()
    }
    at = end + 1
  }
  return false
}

/** The number of line feeds from `from` to `to`. */
export function lineFeeds(bytes: Buffer, from: number, to: number): number {
  let count = 0
  for (let at = bytes.indexOf(LF, from); at !== -1 && at < to; at = bytes.indexOf(LF, at + 1)) count++
  return count
}
