import type { Filter } from './filter.js'

/**
 * Texts of which one must be in a line for the line to pass the filters. A JSON string may spell any character as
 * `\u….`: a line that holds `marker` may hide a text, and must be parsed.
 */
export interface Needle {
  readonly texts: readonly Buffer[]
  readonly marker: Buffer
}

const MAX_TEXTS = 8

/**
 * The needle of the filters, `undefined` when they have none. Only filters before the first typed one are asked: rows
 * that reach a typed filter are counted when they cannot be compared.
 */
export function needleOf(filters: readonly Filter[]): Needle | undefined {
  const firstTyped = filters.findIndex(({ isTyped }) => isTyped)
  const asked = firstTyped === -1 ? filters : filters.slice(0, firstTyped)
  let best: readonly string[] | undefined
  for (const { needs } of asked) {
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

/** A text that only a JSON string can be, with its quotes: a text beside it is then no reason to parse a line. */
function wholeString(text: string): string {
  const part = plainPart(text)
  const mayBeNoString = /^(?:-?\d|-?Infinity$|NaN$|true$|false$)/.test(text)
  return part === text && !mayBeNoString ? `"${text}"` : part
}

/**
 * The longest part of a text that a JSON line can hold in one way only, `\u` escapes apart. Not so: what is escaped
 * otherwise (quotes, backslashes, slashes, control characters), what JSON itself is made of, beside which a line may
 * have more or fewer spaces than the text that filters see, and what stands for bytes that are no UTF-8.
 */
function plainPart(text: string): string {
  const parts = text.split(/["\\/\p{Cc}\p{Surrogate}\ufffd,:[\]{}]+/u).map((part) => part.trim())
  return parts.reduce((longest, part) => (part.length > longest.length ? part : longest), '')
}
