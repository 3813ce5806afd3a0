import { valueKind } from '#schema/argument-issues.js'
import type { Path } from '#schema/argument-issues.js'

/** A value of a call in a few words, for a message: never a large text, never a secret. */
export function summaryOf(name: string, value: unknown): string {
  if (isSensitive(name)) return withoutValue(value)
  if (typeof value === 'string') return textSummary(name, value)
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object' && value !== null) return `an object of ${Object.keys(value).length} fields`
  return String(value)
}

/** The value at a place, for parentheses after its problem: a string in quotes, else the kind of the value. */
export function inputAt(path: Path, value: unknown): string {
  const names = path.map(String)
  if (names.some(isSensitive)) return withoutValue(value)
  if (typeof value !== 'string') return valueKind(value).replace(/^an? /, '')
  return isLargeField(names) && value.length > LONGEST_SHOWN ? withoutValue(value) : quoted(value)
}

/** A dotted path, `<root>` for the root; long and odd names are cut and escaped. */
export function dotted(path: Path): string {
  if (path.length === 0) return '<root>'
  return clipped(path.map((step) => shownName(String(step))).join('.'), 160)
}

/** A field's name in a message. */
export function shownName(name: string): string {
  return clipped(JSON.stringify(name).slice(1, -1), 60)
}

/** The first `most` characters (UTF-16 units) of a string; a longer one ends in `…`, and no surrogate pair is split. */
export function clipped(text: string, most: number): string {
  return text.length <= most ? text : `${wholeStart(text, most - 1)}…`
}

/** At most `most` UTF-16 units from the start of a string, without half a surrogate pair at the end. */
export function wholeStart(text: string, most: number): string {
  const last = text.charCodeAt(most - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most)
}

/** At most `most` UTF-16 units from the end of a string, without half a surrogate pair at the start. */
export function wholeEnd(text: string, most: number): string {
  const from = text.length - most
  const first = text.charCodeAt(from)
  return text.slice(first >= 0xdc00 && first <= 0xdfff ? from + 1 : from)
}

/** Characters of a string that a message shows. */
const LONGEST_PREVIEW = 80
/** Above this length, only the length of a field with content is shown. */
const LONGEST_SHOWN = 200

function textSummary(name: string, value: string): string {
  if (value.length > LONGEST_SHOWN && isLargeField([name])) return withoutValue(value)
  return value.length <= LONGEST_PREVIEW ? quoted(value) : `${quoted(value)} (${value.length} characters)`
}

function quoted(text: string): string {
  const shown = text.length <= LONGEST_PREVIEW ? text : wholeStart(text, LONGEST_PREVIEW)
  return `${JSON.stringify(shown)}${shown.length < text.length ? '…' : ''}`
}

function withoutValue(value: unknown): string {
  return typeof value === 'string' ? `a string of ${value.length} characters` : valueKind(value)
}

/** Better to hide a harmless value than to show a secret. */
function isSensitive(name: string): boolean {
  return /key|token|secret|passw|passphrase|authorization|credential|cookie|bearer/i.test(name)
}

function isLargeField(names: readonly string[]): boolean {
  return names.some((name) => /content|string|text|body|code|script|source|patch|diff|data|html|markdown/i.test(name))
}
