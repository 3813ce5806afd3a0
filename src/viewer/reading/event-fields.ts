import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'

/** An event of a log, as far as anything can be known of it: it may be of a later version, or of another program. */
export type ReadEvent = JsonObject & { readonly kind: string; readonly seq: number }

/** A member that should be a text; empty if it is none. */
export function textAt(value: unknown, name: string): string {
  const member = memberOf(value, name)
  return typeof member === 'string' ? member : ''
}

/** A member that should be a number; null if it is none. */
export function numberAt(value: unknown, name: string): number | null {
  const member = memberOf(value, name)
  return typeof member === 'number' ? member : null
}

/** The objects in a member that should be a list of them. */
export function objectsAt(value: unknown, name: string): readonly JsonObject[] {
  const member = memberOf(value, name)
  return Array.isArray(member) ? (member.filter(isObject) as JsonObject[]) : []
}

/** A member that should be an object; empty if it is none. */
export function objectAt(value: unknown, name: string): JsonObject {
  const member = memberOf(value, name)
  return isObject(member) ? (member as JsonObject) : {}
}

/** A member of an object, whatever it is. */
export function memberOf(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

/** ms since 1970 of a time in ISO 8601; 0 if it is none. */
export function timeAt(value: unknown, name = 'at'): number {
  const time = Date.parse(textAt(value, name))
  return Number.isNaN(time) ? 0 : time
}

/** A text in one line, cut. */
export function brief(text: string, most = 200): string {
  const line = /[^\S ]|  |^ | $/.test(text) ? text.replace(/\s+/g, ' ').trim() : text
  return line.length > most ? `${line.slice(0, most - 1).replace(/[\uD800-\uDBFF]$/, '')}…` : line
}

/** The texts of content parts, and what else there is in brackets. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part: unknown) => (textAt(part, 'type') === 'text' ? textAt(part, 'text') : `[${textAt(part, 'type')}]`))
    .join(' ')
}

/** The content of an envelope whose JSON may be cut; a text that is no envelope as it is. */
export function envelopeContent(output: string): string {
  const found = /^\{"ok":(?:true|false),"content":"((?:[^"\\]|\\.)*)/s.exec(output)?.[1]
  if (found === undefined) return output
  try {
    return JSON.parse(`"${found}"`) as string
  } catch {
    return found
  }
}
