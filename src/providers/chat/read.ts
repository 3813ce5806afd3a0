/** `value` if it is a string, else an empty one. */
export function stringIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** `value` if it is a list, else an empty one. */
export function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Whether `value` is a list or an object that holds anything. */
export function isFilled(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}
