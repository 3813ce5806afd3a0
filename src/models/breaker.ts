/** When a candidate is not asked for a while. */
export interface BreakerOptions {
  /** Failures in a row, over all calls, after which it opens. Default 5. */
  readonly failures?: number | undefined
  /** How long it stays open, in ms; then one call at a time may try. Default 60,000. */
  readonly openMs?: number | undefined
}

/** Counts the failures of one candidate, in this process. While it is open, the candidate is not asked. */
export class Breaker {
  readonly #failures: number
  readonly #openMs: number
  #count = 0
  #openUntil = 0
  #isTrying = false
  #lastFailure = -Infinity

  constructor({ failures = 5, openMs = 60_000 }: BreakerOptions) {
    this.#failures = failures
    this.#openMs = openMs
  }

  /** How long it lets nothing through, in ms; 0: it does now. */
  get waitMs(): number {
    if (this.#count < this.#failures) return 0
    const left = this.#openUntil - Date.now()
    // Whoever tries needs a moment.
    return left > 0 ? left : this.#isTrying ? TRY_MS : 0
  }

  /** Time since the last failure, in ms. */
  get wellMs(): number {
    return Date.now() - this.#lastFailure
  }

  /** A call begins: of an open one, it is the one that tries. */
  begin(): void {
    this.#isTrying = true
  }

  succeeded(): void {
    this.#isTrying = false
    this.#count = 0
  }

  failed(): void {
    this.#isTrying = false
    this.#count += 1
    this.#lastFailure = Date.now()
    if (this.#count >= this.#failures) this.#openUntil = this.#lastFailure + this.#openMs
  }

  /** The call says nothing of the candidate: the request was at fault, or the caller has aborted it. */
  endedOtherwise(): void {
    this.#isTrying = false
  }
}

const TRY_MS = 1_000
