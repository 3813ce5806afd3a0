/**
 * Proof has three lengths: `npm test` tries what is written in a test, `THINHARNESS_RUNS=10` ten times as many cases (as
 * `npm run test:long` does), and `THINHARNESS_LONG=1` all cases of the full bar.
 */
export const isLong = Number(process.env['THINHARNESS_LONG'] ?? 0) > 0

const FACTOR = Math.max(1, Number(process.env['THINHARNESS_RUNS'] ?? 1))
const HOUR_MS = 3_600_000

/** How many cases are tried, or how long one of them is. */
export function times(short: number, long = short * 20): number {
  return isLong ? long : Math.min(Math.max(short, long), Math.ceil(short * FACTOR))
}

/** The time limit of a test whose cases `times` counts: a limit of the short form, in ms. */
export function timeLimit(shortMs: number): number {
  return isLong ? 24 * HOUR_MS : Math.min(24 * HOUR_MS, shortMs * FACTOR)
}

/**
 * How often fast-check tries a property, and from which seed: another one each time, named by a failure. `THINHARNESS_SEED`
 * repeats a failure.
 */
export function rounds(short: number, long?: number): { readonly numRuns: number; readonly seed?: number } {
  const seed = process.env['THINHARNESS_SEED']
  return { numRuns: times(short, long), ...(seed !== undefined && { seed: Number(seed) }) }
}

/** Of cases in an order, one in so many is tried: in the long form each. */
export function oneIn(short: number): number {
  return Math.max(1, Math.floor(short / times(1, short)))
}
