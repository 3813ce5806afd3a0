import type { FieldStep } from './field-path.js'

/**
 * The JSON text of the value at a path, as written: `JSON.parse` drops digits beyond the 17th, and the difference between `1`
 * and `1.0`. Of duplicate keys the last one counts, as for `JSON.parse`. (From Node 21, `JSON.parse` can report source texts.)
 * @param text Valid JSON; `NaN`, `Infinity` and `-Infinity` are allowed as numbers.
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
 * JSON text in the one form that is shown and compared: one space after `,` and `:`, none elsewhere, characters beyond ASCII
 * unescaped, numbers as written.
 */
export function normalizedJson(source: string): string {
  let result = ''
  let end = 0
  for (let at = skipSpace(source, 0); at < source.length; at = skipSpace(source, end)) {
    end = skipToken(source, at)
    const token = source.slice(at, end)
    if (token === ',' || token === ':') result += `${token} `
    else result += token.startsWith('"') && token.includes('\\') ? JSON.stringify(stringOf(token)) : token
  }
  return result
}

/** JSON text with `1e999` in place of `NaN`, `Infinity` and `-Infinity`, which `JSON.parse` rejects. */
export function withoutNonFinite(text: string): string {
  let result = ''
  let end = 0
  for (let at = 0; at < text.length; at = end) {
    end = isSpace(text.charCodeAt(at)) ? at + 1 : skipToken(text, at)
    const token = text.slice(at, end)
    result += NON_FINITE.has(token) ? '1e999' : token
  }
  return result
}

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
  let last: number | undefined
  let at = skipSpace(text, object + 1)
  while (text.charCodeAt(at) === QUOTE) {
    const keyEnd = skipString(text, at)
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
    if (stringOf(text.slice(at, keyEnd)) === key) last = start
    at = nextItem(text, start)
  }
  return last
}

function elementStart(text: string, array: number, index: number): number | undefined {
  if (text.charCodeAt(array) !== OPEN_BRACKET) return undefined
  const starts: number[] = []
  let at = skipSpace(text, array + 1)
  while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET) {
    if (starts.length === index) return at
    starts.push(at)
    at = nextItem(text, at)
  }
  return starts.at(index)
}

/** The item after the value at `start`, or the end of its object or array. */
function nextItem(text: string, start: number): number {
  const at = skipSpace(text, skipValue(text, start))
  return text.charCodeAt(at) === COMMA ? skipSpace(text, at + 1) : at
}

/** Without recursion: a value may be nested as deep as it is long. */
function skipValue(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length;) {
    const code = text.charCodeAt(at)
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth--
    at = isSpace(code) ? at + 1 : skipToken(text, at)
    if (depth === 0) return at
  }
  return text.length
}

/** The end of a string, a punctuation mark, or a number or word. */
function skipToken(text: string, start: number): number {
  const first = text.charCodeAt(start)
  if (first === QUOTE) return skipString(text, start)
  let at = start + 1
  if (isPunctuation(first)) return at
  while (at < text.length && !isPunctuation(text.charCodeAt(at)) && !isSpace(text.charCodeAt(at))) at++
  return at
}

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

function skipSpace(text: string, start: number): number {
  let at = start
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

function isPunctuation(code: number): boolean {
  if (code === COMMA || code === COLON || code === OPEN_BRACE || code === CLOSE_BRACE) return true
  return code === OPEN_BRACKET || code === CLOSE_BRACKET
}

function stringOf(raw: string): string {
  return raw.includes('\\') ? String(JSON.parse(raw)) : raw.slice(1, -1)
}
