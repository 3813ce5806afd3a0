import type { Filter } from './filter.js'

/**
 * At least one of these strings occurs in every line that passes the filters. A JSON string may spell any character as
 * `\u….`: a line with `marker` may contain such a string in escaped form, and must be parsed.
 */
export interface Needle {
  readonly texts: readonly Buffer[]
  readonly marker: Buffer
}

const MAX_TEXTS = 8

/**
 * The needle of the filters, `undefined` if they have none. Only filters before the first typed one are used: rows that
 * reach a typed filter are counted if they cannot be compared.
 */
export function needleOf(filters: readonly Filter[]): Needle | undefined {
  const firstTyped = filters.findIndex(({ isTyped }) => isTyped)
  const used = firstTyped === -1 ? filters : filters.slice(0, firstTyped)
  let best: readonly string[] | undefined
  for (const { needs } of used) {
    const texts = needs?.texts.map(needs.isWhole ? wholeString : plainPart)
    if (texts === undefined || texts.length > MAX_TEXTS || shortest(texts) === 0) continue
    if (best === undefined || shortest(texts) > shortest(best)) best = texts
  }
  if (best === undefined) return undefined
  const isAscii = best.every((text) => /^[ -~]*$/.test(text))
  return { texts: best.map((text) => Buffer.from(text)), marker: Buffer.from(isAscii ? '\\u00' : '\\u') }
}

function shortest(texts: readonly string[]): number {
  return Math.min(...texts.map(({ length }) => length))
}

/** With its quotes if only a JSON string can have this text: then longer strings that contain it need not be parsed. */
function wholeString(text: string): string {
  const part = plainPart(text)
  const mayBeNoString = /^(?:-?\d|-?Infinity$|NaN$|true$|false$)/.test(text)
  return part === text && !mayBeNoString ? `"${text}"` : part
}

/**
 * The longest part of a string that a JSON line can spell in only one way, except for `\u` escapes. It contains no characters
 * with other escapes (quotes, backslashes, slashes, control characters), no punctuation of JSON (a line may have other spaces
 * next to it than the text that filters see), and no replacement for invalid UTF-8.
 */
function plainPart(text: string): string {
  const parts = text.split(/["\\/\p{Cc}\p{Surrogate}\ufffd,:[\]{}]+/u).map((part) => part.trim())
  return parts.reduce((longest, part) => (part.length > longest.length ? part : longest), '')
}
