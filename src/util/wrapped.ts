export type Work<In, Out> = (input: In) => Promise<Out>
/** Surrounds work: it may change the input or the result, do the work again, or not at all. */
export type Wrap<In, Out> = (input: In, next: Work<In, Out>) => Promise<Out>

/** The work with its wraps around it. The first is the outermost; without any, it is the work itself. */
export function wrapped<In, Out>(wraps: readonly Wrap<In, Out>[], work: Work<In, Out>): Work<In, Out> {
  return wraps.reduceRight<Work<In, Out>>((next, wrap) => (input) => wrap(input, next), work)
}

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
