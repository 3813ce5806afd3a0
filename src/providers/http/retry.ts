import { HarnessError } from '#contracts/errors.js'
import { NO_TOKENS } from '#contracts/entry.js'
import type { TokenUsage } from '#contracts/entry.js'
import type { Attempt, AttemptEnd } from '#contracts/attempt.js'
import type { TransportRetry } from '#core/model-session.js'
import { sleep } from '#util/timeout.js'
import { wasSent } from './provider-errors.js'
import { mayBeCharged } from './request-guard.js'

/** What a reply has used. */
interface Used {
  readonly usage: TokenUsage
  readonly responseModel?: string | null
}

export interface RetryOptions {
  /** Retries allowed. */
  readonly maxRetries: number
  readonly signal: AbortSignal
  readonly onRetry?: ((retry: TransportRetry) => void) | undefined
  /** Reserves for an attempt. Default: nothing is reserved. */
  readonly begin?: (() => Promise<Attempt>) | undefined
}

/** One attempt at a request. */
export interface RetriedAttempt {
  /** Set when a piece of its reply has been emitted. */
  hasEmitted: boolean
  /** The most tokens of its reply; null: as many as the turn allows. */
  readonly maxOutputTokens: number | null
}

const FIRST_DELAY_MS = 500
const LONGEST_DELAY_MS = 30_000
/** If a server asks for a longer wait than this, its error is left to the caller. */
const LONGEST_RETRY_AFTER_MS = 120_000

/**
 * Asks until an attempt succeeds, fails for good, or `maxRetries` retries have failed. Waits as long as the server asks
 * (`Retry-After`) plus up to a tenth; otherwise 500 ms, doubled each time up to 30 s, plus up to a quarter, so that
 * runs that failed together do not retry together. Each retry is reported first, with `withdrawn` if the failed attempt
 * had emitted deltas. A request that timed out after it was sent is repeated only if that is free. Rejects with the last error, or with the reason of `signal`.
 */
export async function withRetries<T extends Used>(
  ask: (attempt: RetriedAttempt) => Promise<T>,
  options: RetryOptions,
): Promise<T> {
  const { maxRetries, signal, onRetry, begin } = options
  for (let failed = 1; ; failed++) {
    const paid = begin === undefined ? undefined : await begin()
    const attempt: RetriedAttempt = { hasEmitted: false, maxOutputTokens: paid?.maxOutputTokens ?? null }
    try {
      const reply = await ask(attempt)
      paid?.settle(reply.usage, { status: 200, responseModel: reply.responseModel ?? null })
      return reply
    } catch (error) {
      paid?.settle(wasSent(error) ? null : NO_TOKENS, { ...endOf(error), withdrawn: attempt.hasEmitted })
      signal.throwIfAborted()
      if (!(error instanceof HarnessError) || !error.retryable || failed > maxRetries) throw error
      if (mayBeCharged(error)) throw error
      if ((error.retryAfterMs ?? 0) > LONGEST_RETRY_AFTER_MS) throw error
      const delayMs = delayAfter(failed, error.retryAfterMs)
      onRetry?.({ attempt: failed, delayMs, withdrawn: attempt.hasEmitted, ...reasonOf(error) })
      await sleep(delayMs, signal)
    }
  }
}

/** How a failed attempt ended. */
function endOf(error: unknown): AttemptEnd {
  const { failure = 'unknown', status } = error instanceof HarnessError ? error : {}
  return { failure, status }
}

/** What a report of a retry says of the error. */
export function reasonOf(error: HarnessError): Pick<TransportRetry, 'reason' | 'status' | 'failure'> {
  const { message, status, failure } = error
  return { reason: message, status: status ?? null, ...(failure !== undefined && { failure }) }
}

/** True if the server may have rejected a request because it was streamed. */
export function isAgainstStreams({ status = 0, message }: HarnessError): boolean {
  return [400, 404, 405, 415, 422, 501].includes(status) && /\bstream(?:ing|ed|s|_options)?\b/i.test(message)
}

function delayAfter(failed: number, retryAfterMs: number | undefined): number {
  if (retryAfterMs !== undefined) return Math.round(retryAfterMs * (1 + Math.random() / 10))
  const delay = Math.min(FIRST_DELAY_MS * 2 ** (failed - 1), LONGEST_DELAY_MS)
  return Math.round(delay * (1 + Math.random() / 4))
}
