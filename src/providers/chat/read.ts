/** An object of a reply: what it holds is not known. */
export type Fields = Readonly<Record<string, unknown>>

/** `value` if it is a string, else an empty one. */
export function stringIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** `value` if it is a list, else an empty one. */
export function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** `object` without the members of these names. */
export function without(object: Fields, ...names: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))
}

/** Whether `value` is a list or an object that holds anything. */
export function isFilled(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}
