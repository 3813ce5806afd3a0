export type Work<In, Out> = (input: In) => Promise<Out>
/** Surrounds work: it may change the input or the result, do the work again, or not at all. */
export type Wrap<In, Out> = (input: In, next: Work<In, Out>) => Promise<Out>

/** The work with its wraps around it. The first is the outermost; without any, it is the work itself. */
export function wrapped<In, Out>(wraps: readonly Wrap<In, Out>[], work: Work<In, Out>): Work<In, Out> {
  return wraps.reduceRight<Work<In, Out>>((next, wrap) => (input) => wrap(input, next), work)
}
