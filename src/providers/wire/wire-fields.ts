import { isObject } from '#util/json.js'

/** An object of a reply; its content is unknown. */
export type WireFields = Readonly<Record<string, unknown>>

/** `value` if it is a string, otherwise an empty one. */
export function stringIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** `value` if it is a list, otherwise an empty one. */
export function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The objects in `value`, if it is a list. */
export function objectsIn(value: unknown): readonly WireFields[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** `value` if it is a token count, otherwise null. */
export function countIn(value: unknown): number | null {
  return Number.isInteger(value) && (value as number) >= 0 ? (value as number) : null
}

/** Tokens of a reply's output. Some servers count thoughts beside it: their total says so, or thoughts that are more than all output. */
export function outputTokens(
  counts: Readonly<Record<'input' | 'output' | 'reasoning' | 'total', number | null>>,
): number | null {
  const { input, output, reasoning, total } = counts
  if (output === null || reasoning === null || reasoning === 0) return output
  const isBeside = reasoning > output || total === (input ?? NaN) + output + reasoning
  return isBeside && total !== (input ?? NaN) + output ? output + reasoning : output
}

/** True if `value` is a list or an object with at least one member. */
export function isFilled(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}

/** `object` without the members of these names. */
export function without<T>(
  object: Readonly<Record<string, T>>,
  ...names: readonly string[]
): Readonly<Record<string, T>> {
  return membersWith(object, null, names)
}

/**
 * The members whose value passes, if that is asked, but those of the names in `left`. A list of entries in between would cost ten
 * times as much, and a function that is called with each name is slow on the path of a turn.
 */
export function membersWith<T>(
  object: Readonly<Record<string, T>>,
  passes: ((value: T) => boolean) | null,
  left: readonly string[] = [],
): Readonly<Record<string, T>> {
  const members: Record<string, T> = {}
  for (const name of Object.keys(object)) {
    const value = object[name] as T
    if (left.includes(name) || passes?.(value) === false) continue
    if (name === '__proto__') Object.defineProperty(members, name, { value, enumerable: true, writable: true })
    else members[name] = value
  }
  return members
}
