import { invalidOptions, parse } from '#contracts/parse.js'
import { functionAtOnce, integer, oneOf, partial } from '#util/shape.js'
import { isObject } from '#util/json.js'
import { shownValue } from '#util/mismatch.js'
import { LONGEST_TIMER_MS } from '#util/timeout.js'
import type { FallbackOptions } from './fallback.js'

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

/** Throws `invalid_options`. */
export function checkRoute(models: unknown, choose: unknown): void {
  if (!isObject(models) || Object.keys(models).length === 0)
    throw invalidOptions(`Expected \`route\` to get an object with at least one model, got ${shownValue(models)}.`)
  if (typeof choose !== 'function')
    throw invalidOptions(`Expected the chooser of \`route\` to be a function, got ${shownValue(choose)}.`)
}
