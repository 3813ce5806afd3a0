import { HarnessError } from '../../contracts/errors.js'
import type { TransportRetry } from '../../contracts/model.js'

interface RetryOptions {
  /** Repetitions allowed. */
  readonly maxRetries: number
  readonly signal: AbortSignal
  readonly onRetry: ((retry: TransportRetry) => void) | undefined
}

/** One attempt at a request. */
export interface Attempt {
  /** Set once a piece of its reply has been told. */
  toldDeltas: boolean
}

const FIRST_DELAY_MS = 500
const LONGEST_DELAY_MS = 30_000
/** A server that asks for a longer wait than this is not waited for: its error is the caller's. */
const LONGEST_RETRY_AFTER_MS = 120_000

/**
 * Asks until an attempt succeeds, fails for good, or `maxRetries` repetitions have failed. Waits as long as the
 * server says (`Retry-After`) and up to a tenth longer, else 500 ms and twice as long each time, up to 30 s, and up to a
 * quarter longer: runs that failed together do not come back together. Each repetition is told first, with a word on
 * whether deltas of the failed attempt had been told. Rejects with the last error, or with the reason of `signal`.
 */
export async function withRetries<T>(ask: (attempt: Attempt) => Promise<T>, options: RetryOptions): Promise<T> {
  const { maxRetries, signal, onRetry } = options
  for (let failed = 1; ; failed++) {
    const attempt: Attempt = { toldDeltas: false }
    try {
      return await ask(attempt)
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof HarnessError) || !error.retryable || failed > maxRetries) throw error
      if ((error.retryAfterMs ?? 0) > LONGEST_RETRY_AFTER_MS) throw error
      const delayMs = delayAfter(failed, error.retryAfterMs)
      const { message: reason, status = null } = error
      onRetry?.({ attempt: failed, delayMs, reason, status, withdrawn: attempt.toldDeltas })
      await pause(delayMs, signal)
    }
  }
}

function delayAfter(failed: number, retryAfterMs: number | undefined): number {
  if (retryAfterMs !== undefined) return Math.round(retryAfterMs * (1 + Math.random() / 10))
  const delay = Math.min(FIRST_DELAY_MS * 2 ** (failed - 1), LONGEST_DELAY_MS)
  return Math.round(delay * (1 + Math.random() / 4))
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    }, ms)
    // Whoever was told of the repetition may have had enough.
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}
