/**
 * The value of a function that has to return it at once. Throws a plain error for a promise: nobody would wait for it, and what it
 * would say, or that it fails, would be lost.
 */
export function atOnce<T>(what: string, value: T): T {
  if (!isThenable(value)) return value
  Promise.resolve(value).catch(() => undefined)
  throw new TypeError(`Expected ${what} to return its result at once, got a promise.`)
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
