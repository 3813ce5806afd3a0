import { setTimeout as sleep } from 'node:timers/promises'
import { HarnessError } from '../errors.js'
import type { ModelDelta, TransportRetry } from '../model/contracts.js'

export interface RetryOptions {
  /** Repetitions allowed. */
  readonly maxRetries: number
  readonly signal: AbortSignal
  readonly onRetry: ((retry: TransportRetry) => void) | undefined
}

/** One attempt at a request; knows whether anything of its reply has been told. */
export class Attempt {
  #told = false

  get toldDeltas(): boolean {
    return this.#told
  }

  /** `onDelta`, watched. */
  watch(onDelta: ((delta: ModelDelta) => void) | undefined): ((delta: ModelDelta) => void) | undefined {
    if (onDelta === undefined) return undefined
    return (delta) => {
      this.#told = true
      onDelta(delta)
    }
  }
}

const FIRST_DELAY_MS = 500
const LONGEST_DELAY_MS = 30_000
/** A server that asks for a longer wait than this is not waited for: the caller is told. */
const LONGEST_RETRY_AFTER_MS = 120_000

/**
 * Asks until an attempt succeeds, fails for good, or `maxRetries` repetitions have failed. Waits as long as the server
 * says (`Retry-After`), else twice as long each time with up to a quarter of jitter. Each repetition is told first, with
 * a word on whether deltas of the failed attempt had been told.
 */
export async function withRetries<T>(ask: (attempt: Attempt) => Promise<T>, options: RetryOptions): Promise<T> {
  const { maxRetries, signal, onRetry } = options
  for (let failed = 1; ; failed++) {
    const attempt = new Attempt()
    try {
      return await ask(attempt)
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof HarnessError) || !error.retryable || failed > maxRetries) throw error
      const delayMs = delayAfter(failed, error.retryAfterMs)
      if (delayMs > LONGEST_RETRY_AFTER_MS) throw error
      const { message: reason, status = null } = error
      onRetry?.({ attempt: failed, delayMs, reason, status, withdrawn: attempt.toldDeltas })
      await sleep(delayMs, undefined, { signal })
    }
  }
}

function delayAfter(failed: number, retryAfterMs: number | undefined): number {
  if (retryAfterMs !== undefined) return retryAfterMs
  const delay = Math.min(FIRST_DELAY_MS * 2 ** (failed - 1), LONGEST_DELAY_MS)
  return Math.round(delay * (1 + Math.random() / 4))
}
