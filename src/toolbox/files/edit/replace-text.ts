import { hasLoneSurrogate } from '#util/characters.js'

export interface Replacement {
  readonly oldText: string
  readonly newText: string
  readonly replaceAll: boolean
  /** Required number of matches; `undefined` for any. */
  readonly expected: number | undefined
}

export type Replaced =
  | {
      readonly kind: 'replaced'
      readonly text: string
      readonly count: number
      /** The first few changes, in order. */
      readonly changes: readonly Change[]
      /** `oldText` only matched once its JSON escapes were decoded. */
      readonly repaired: boolean
    }
  | { readonly kind: 'equal' }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'unexpected_count'; readonly count: number; readonly expected: number }
  | { readonly kind: 'ambiguous'; readonly count: number; readonly offsets: readonly number[] }
  | { readonly kind: 'too_large' }

/** One replacement: its offset and length in the text before and in the text after. */
export interface Change {
  readonly oldAt: number
  readonly newAt: number
  readonly oldLength: number
  readonly newLength: number
}

const FIRST_MATCHES = 5
const MAX_TEXT_CHARS = 100_000_000

/**
 * Replaces exact text, never similar text. If all lines of the text end in CRLF, LF in the arguments means CRLF; any other
 * text is matched unchanged.
 */
export function replaceText(text: string, { oldText, newText, replaceAll, expected }: Replacement): Replaced {
  if (oldText === newText) return { kind: 'equal' }
  const isCrlf = endsLinesWithCrlf(text)
  const adapt = (part: string): string => (isCrlf ? part.replace(/\r?\n/g, '\r\n') : part)
  const exact = { old: adapt(oldText), new: adapt(newText) }
  const matches = matchesOf(text, exact.old)
  if (matches.count === 0) return replaceRepaired(text, { oldText, newText, expected }, adapt)
  if (expected !== undefined && matches.count !== expected) {
    return { kind: 'unexpected_count', count: matches.count, expected }
  }
  if (matches.count > 1 && !replaceAll) return { kind: 'ambiguous', ...matches }
  return applyReplacement(text, exact, { matches, repaired: false })
}

interface Pair {
  readonly old: string
  readonly new: string
}

interface Matches {
  readonly count: number
  /** Of the first few. */
  readonly offsets: readonly number[]
}

/** Models sometimes escape text unnecessarily. Escapes are decoded only if this leads to exactly one match. */
function replaceRepaired(
  text: string,
  { oldText, newText, expected }: Omit<Replacement, 'replaceAll'>,
  adapt: (text: string) => string,
): Replaced {
  const decoded = decodeEscapes(oldText)
  if (decoded === undefined || decoded === oldText) return { kind: 'not_found' }
  const pair = { old: adapt(decoded), new: adapt(decodeEscapes(newText) ?? newText) }
  if (pair.old === pair.new) return { kind: 'equal' }
  const matches = matchesOf(text, pair.old)
  if (matches.count !== 1) return { kind: 'not_found' }
  if (expected !== undefined && expected !== 1) return { kind: 'unexpected_count', count: 1, expected }
  return applyReplacement(text, pair, { matches, repaired: true })
}

function applyReplacement(
  text: string,
  pair: Pair,
  { matches, repaired }: { readonly matches: Matches; readonly repaired: boolean },
): Replaced {
  const growth = pair.new.length - pair.old.length
  if (text.length + matches.count * growth > MAX_TEXT_CHARS) return { kind: 'too_large' }
  const changes = matches.offsets.map((oldAt, index) => ({
    oldAt,
    newAt: oldAt + index * growth,
    oldLength: pair.old.length,
    newLength: pair.new.length,
  }))
  const after = text.replaceAll(pair.old, () => pair.new)
  return { kind: 'replaced', text: after, count: matches.count, changes, repaired }
}

function matchesOf(text: string, wanted: string): Matches {
  const offsets: number[] = []
  let count = 0
  if (wanted === '') return { count, offsets }
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length)) {
    if (count < FIRST_MATCHES) offsets.push(at)
    count++
  }
  return { count, offsets }
}

/** The text decoded as the content of a JSON string; `undefined` if it is not one. */
function decodeEscapes(text: string): string | undefined {
  if (!text.includes('\\')) return undefined
  try {
    const decoded: unknown = JSON.parse(`"${text}"`)
    return typeof decoded === 'string' && !hasLoneSurrogate(decoded) ? decoded : undefined
  } catch {
    return undefined
  }
}

function endsLinesWithCrlf(text: string): boolean {
  return text.includes('\r\n') && !/(?<!\r)\n|\r(?!\n)/.test(text)
}
