import type { FieldStep } from './field-path.js'

/**
 * The JSON text of the value that a path leads to, as it was written: `JSON.parse` forgets digits beyond the 17th, and
 * whether a number was `1` or `1.0`. Of a key that is there twice the last one counts, as for `JSON.parse`.
 * @param text Valid JSON; `NaN`, `Infinity` and `-Infinity` may stand for numbers.
 */
export function sourceAt(text: string, steps: readonly FieldStep[]): string | undefined {
  let at = skipSpace(text, 0)
  for (const step of steps) {
    const next = typeof step === 'number' ? elementStart(text, at, step) : memberStart(text, at, step)
    if (next === undefined) return undefined
    at = next
  }
  return text.slice(at, skipValue(text, at))
}

/**
 * JSON text in the one form that is shown and compared: one space after `,` and `:`, none elsewhere, characters beyond
 * ASCII as themselves, numbers as they were written.
 */
export function normalizedJson(source: string): string {
  let result = ''
  for (let at = skipSpace(source, 0); at < source.length; at = skipSpace(source, at)) {
    const code = source.charCodeAt(at)
    if (code === QUOTE) {
      const end = skipString(source, at)
      result += normalizedString(source.slice(at, end))
      at = end
    } else if (isPunctuation(code)) {
      result += code === COMMA ? ', ' : code === COLON ? ': ' : source.charAt(at)
      at++
    } else {
      const end = skipScalar(source, at)
      result += source.slice(at, end)
      at = end
    }
  }
  return result
}

/** JSON text with `1e999` in place of `NaN`, `Infinity` and `-Infinity`, which `JSON.parse` does not take. */
export function withoutNonFinite(text: string): string {
  let result = ''
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at)
    let end = at + 1
    if (code === QUOTE) end = skipString(text, at)
    else if (!isPunctuation(code) && !isSpace(code)) end = skipScalar(text, at)
    const token = text.slice(at, end)
    result += NON_FINITE.has(token) ? '1e999' : token
    at = end
  }
  return result
}

/** What some writers put where a number is none. */
const NON_FINITE: ReadonlySet<string> = new Set(['NaN', 'Infinity', '-Infinity'])

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

function memberStart(text: string, object: number, key: string): number | undefined {
  if (text.charCodeAt(object) !== OPEN_BRACE) return undefined
  let found: number | undefined
  let at = skipSpace(text, object + 1)
  while (at < text.length && text.charCodeAt(at) === QUOTE) {
    const keyEnd = skipString(text, at)
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
    if (stringOf(text.slice(at, keyEnd)) === key) found = start
    at = nextItem(text, skipValue(text, start))
  }
  return found
}

function elementStart(text: string, array: number, index: number): number | undefined {
  if (text.charCodeAt(array) !== OPEN_BRACKET) return undefined
  const place = index < 0 ? elementCount(text, array) + index : index
  if (place < 0) return undefined
  let at = skipSpace(text, array + 1)
  for (let count = 0; at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET; count++) {
    if (count === place) return at
    at = nextItem(text, skipValue(text, at))
  }
  return undefined
}

function elementCount(text: string, array: number): number {
  let count = 0
  let at = skipSpace(text, array + 1)
  while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET) {
    count++
    at = nextItem(text, skipValue(text, at))
  }
  return count
}

/** Over the comma behind a value, if there is one. */
function nextItem(text: string, valueEnd: number): number {
  const at = skipSpace(text, valueEnd)
  return text.charCodeAt(at) === COMMA ? skipSpace(text, at + 1) : at
}

/** Without recursion: what was written may be nested as deep as it is long. */
function skipValue(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length;) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = skipString(text, at)
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth++
      at++
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth--
      at++
    } else if (isPunctuation(code) || isSpace(code)) at++
    else at = skipScalar(text, at)
    if (depth === 0) return at
  }
  return text.length
}

/** Behind the quote that ends the string which begins at `start`. */
function skipString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end === -1 ? text.length : end + 1
}

function isEscaped(text: string, at: number): boolean {
  let first = at
  while (text.charCodeAt(first - 1) === BACKSLASH) first--
  return (at - first) % 2 === 1
}

function skipScalar(text: string, start: number): number {
  let at = start
  while (at < text.length && !isPunctuation(text.charCodeAt(at)) && !isSpace(text.charCodeAt(at))) at++
  return at
}

function skipSpace(text: string, start: number): number {
  let at = start
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

function isPunctuation(code: number): boolean {
  switch (code) {
    case COMMA:
    case COLON:
    case OPEN_BRACKET:
    case CLOSE_BRACKET:
    case OPEN_BRACE:
    case CLOSE_BRACE:
      return true
    default:
      return false
  }
}

function normalizedString(raw: string): string {
  return raw.includes('\\') ? JSON.stringify(stringOf(raw)) : raw
}

function stringOf(raw: string): string {
  return raw.includes('\\') ? String(JSON.parse(raw)) : raw.slice(1, -1)
}
