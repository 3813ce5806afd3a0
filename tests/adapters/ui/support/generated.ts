import fc from 'fast-check'
import type { Parameters, Plugin } from 'fast-check'

/** In the long form, `RUNS` of them. */
const LONG = process.env['RUNS']

/**
 * How many runs are generated: another set each time. A failure names its seed and path: `SEED=… SEED_PATH=…` runs it again.
 * `RUNS=2000` is the long form, `MINUTES=10` ends each test of it after that time, however many runs it has made, and
 * `NOSHRINK=1` reports a failure as it was found.
 */
export function generated<T>(runs: number): Parameters<T> {
  const { SEED: seed, SEED_PATH: path, NOSHRINK: isRaw, MINUTES: minutes } = process.env
  return {
    numRuns: Number(LONG ?? runs),
    ...(seed !== undefined && { seed: Number(seed) }),
    ...(path !== undefined && { path }),
    endOnFailure: isRaw === '1',
    ...(minutes !== undefined && { plugins: [fc.interruptAfterTimeLimit(Number(minutes) * 60_000) as Plugin<T>] }),
  }
}

/** The time for a test of generated runs, in ms. */
export const GENERATED = {
  timeout: LONG === undefined && process.env['EVERY_BYTE'] === undefined ? 120_000 : 86_400_000,
}
