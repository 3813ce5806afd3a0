import { invalidOptions, parse } from '#contracts/parse.js'
import { either, functionAtOnce, having, integer, oneOf, partial } from '#util/validate.js'
import { isObject } from '#util/json.js'
import { shownValue } from '#util/mismatch.js'
import { LONGEST_TIMER_MS } from '#util/timeout.js'
import type { ProviderFailure } from '#contracts/provider-failure.js'
import type { BreakerOptions } from './breaker.js'
import type { LimitedOptions, LimiterStores, RateLimiterStore } from './limiter.js'
import type { ComposedWindow } from './composed-model.js'

/** What is done after a failure: the same candidate again, the next one, or nothing. */
export type AfterFailure = 'retry' | 'next' | 'fail'

export interface FallbackOptions {
  /** Further requests to one candidate after a failure that passes. Default 1. */
  readonly retries?: number | undefined
  /** The longest wait before a candidate is asked again, in ms; if it asks for more, the next one is asked at once. Default 2,000. */
  readonly maxWaitMs?: number | undefined
  /** The longest wait for the first byte of an answer, and between two pieces of it, in ms; not for the whole. Default 60,000. */
  readonly attemptMs?: number | undefined
  /** A run goes back to a candidate before its own when that had no failure for so long, in ms. Default 60,000. */
  readonly recoverMs?: number | undefined
  /** Counts failures of each candidate, in this process. */
  readonly breaker?: BreakerOptions | undefined
  /** Window of the whole: that of the `smallest` candidate, so that each can answer, or of the `first` one. Default `smallest`. */
  readonly window?: ComposedWindow | undefined
  /**
   * Decides what follows a failure. Default: what passes (`rate_limit`, `overloaded`, `timeout`, `connection`, `server`) is tried
   * again, then the next candidate is asked; after `auth`, `not_found`, `quota` and `unknown` the next one at once; after `context`
   * one with a larger window; after `invalid` and `content` nothing.
   */
  readonly on?:
    | ((failure: ProviderFailure, candidate: { readonly provider: string; readonly model: string }) => AfterFailure)
    | undefined
}

const duration = integer(0, LONGEST_TIMER_MS)

const FALLBACK = partial<FallbackOptions>({
  retries: integer(0),
  maxWaitMs: duration,
  attemptMs: integer(1, LONGEST_TIMER_MS),
  recoverMs: duration,
  breaker: partial({ failures: integer(1), openMs: duration }),
  window: oneOf('smallest', 'first'),
  on: functionAtOnce('on'),
})

/** Throws `invalid_options`. */
export function checkFallback(candidates: unknown, options: FallbackOptions): void {
  if (!Array.isArray(candidates) || candidates.length === 0)
    throw invalidOptions(`Expected \`fallback\` to get a list of at least one model, got ${shownValue(candidates)}.`)
  parse(FALLBACK, options, '`fallback`')
}

const count = integer(1)
const limiter = having<RateLimiterStore>('a limiter, such as of `rate-limiter-flexible`', 'consume')

const LIMITED = partial<LimitedOptions>({
  concurrency: count,
  requestsPerMinute: count,
  tokensPerMinute: count,
  maxWaitMs: duration,
  store: either(limiter, partial<LimiterStores>({ requests: limiter, tokens: limiter })),
})

/** Throws `invalid_options`. */
export function checkLimited(options: LimitedOptions): void {
  parse(LIMITED, options, '`limited`')
}

/** Throws `invalid_options`. */
export function checkRoute(models: unknown, choose: unknown): void {
  if (!isObject(models) || Object.keys(models).length === 0)
    throw invalidOptions(`Expected \`route\` to get an object with at least one model, got ${shownValue(models)}.`)
  if (typeof choose !== 'function')
    throw invalidOptions(`Expected the chooser of \`route\` to be a function, got ${shownValue(choose)}.`)
}
