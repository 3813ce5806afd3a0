/**
 * A set of code points, asked one at a time: a matcher asks once for each character that it meets, and remembers. A
 * predicate is enough for this, and is much smaller than the ranges of, say, all letters.
 */
export interface CharSet {
  has(codePoint: number): boolean
  /** The one code point in it, where it was written as a single character whose case matters or that has no case. */
  readonly only?: number
}

export const ALL: CharSet = { has: () => true }

/** One character, with `ignoreCase` also its other cases (simple folding, as ripgrep does). */
export function single(codePoint: number, ignoreCase: boolean): CharSet {
  if (ignoreCase && hasCase(codePoint)) return fromSource(`\\u{${codePoint.toString(16)}}`, true)
  return { has: (other) => other === codePoint, only: codePoint }
}

/** All code points from `first` to `last`. */
export function range(first: number, last: number, ignoreCase: boolean): CharSet {
  if (ignoreCase) return fromSource(`\\u{${first.toString(16)}}-\\u{${last.toString(16)}}`, true)
  return { has: (codePoint) => codePoint >= first && codePoint <= last }
}

/**
 * A set written as the inside of a JavaScript character class. A class of one character cannot run away, and it brings
 * Unicode's tables and case folding with it.
 */
export function fromSource(source: string, ignoreCase = false): CharSet {
  const one = new RegExp(`^[${source}]$`, ignoreCase ? 'iu' : 'u')
  return { has: (codePoint) => one.test(String.fromCodePoint(codePoint)) }
}

export function union(sets: readonly CharSet[]): CharSet {
  const [first] = sets
  if (first !== undefined && sets.length === 1) return first
  return { has: (codePoint) => sets.some((set) => set.has(codePoint)) }
}

export function complement(set: CharSet): CharSet {
  return { has: (codePoint) => !set.has(codePoint) }
}

export function intersection(left: CharSet, right: CharSet): CharSet {
  return { has: (codePoint) => left.has(codePoint) && right.has(codePoint) }
}

export function difference(left: CharSet, right: CharSet): CharSet {
  return { has: (codePoint) => left.has(codePoint) && !right.has(codePoint) }
}

export function symmetricDifference(left: CharSet, right: CharSet): CharSet {
  return { has: (codePoint) => left.has(codePoint) !== right.has(codePoint) }
}

/** `set` without CR and LF; `undefined` when nothing but those was in it. */
export function withoutLineBreaks(set: CharSet): CharSet | undefined {
  if (!set.has(LF) && !set.has(CR)) return set
  for (let codePoint = 0; codePoint <= LAST_CODE_POINT; codePoint++) {
    if (!isLineBreak(codePoint) && set.has(codePoint)) {
      return { has: (other) => !isLineBreak(other) && set.has(other) }
    }
  }
  return undefined
}

const LF = 0x0a
const CR = 0x0d
const LAST_CODE_POINT = 0x10_ffff

function isLineBreak(codePoint: number): boolean {
  return codePoint === LF || codePoint === CR
}

/** Beyond ASCII every character is taken to have cases: asking costs little, and a wrong no would lose matches. */
function hasCase(codePoint: number): boolean {
  return codePoint > 0x7f || /[a-z]/i.test(String.fromCodePoint(codePoint))
}
