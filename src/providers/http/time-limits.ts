import type { Timeouts } from './options.js'

export type TimeLimits = { readonly [Name in keyof Timeouts]-?: number | null }

/** The limits of a request, in ms; null disables one. */
export function timeLimitsOf(timeouts: Timeouts = {}): TimeLimits {
  const { connectMs = 10_000, firstByteMs = 300_000, idleMs = 300_000, totalMs = null } = timeouts
  return { connectMs, firstByteMs, idleMs, totalMs }
}
