import { providerError } from './errors.js'
import type { Timeouts } from './options.js'

export type Limits = { readonly [Name in keyof Timeouts]-?: number | null }

/** The limits of `Timeouts`, in ms, where nothing else is said. */
const DEFAULT_LIMITS: Limits = { connectMs: 10_000, firstByteMs: 300_000, idleMs: 300_000, totalMs: null }

export function limitsOf(timeouts: Timeouts = {}): Limits {
  const { connectMs, firstByteMs, idleMs, totalMs } = timeouts
  return {
    connectMs: connectMs === undefined ? DEFAULT_LIMITS.connectMs : connectMs,
    firstByteMs: firstByteMs === undefined ? DEFAULT_LIMITS.firstByteMs : firstByteMs,
    idleMs: idleMs === undefined ? DEFAULT_LIMITS.idleMs : idleMs,
    totalMs: totalMs === undefined ? DEFAULT_LIMITS.totalMs : totalMs,
  }
}

type Phase = 'connectMs' | 'firstByteMs' | 'idleMs'

/**
 * Ends one request that takes too long or is aborted, at once and only once. What waits for the request waits through
 * the guard, and so never longer than the limits allow, whether or not the request itself can be stopped.
 *
 * One timer serves all limits: it looks at the clock when it fires and is set anew only where a limit ends earlier, so
 * that a stream of a million chunks makes no timer for each.
 */
export class RequestGuard {
  readonly #signal: AbortSignal
  #limits: Limits
  readonly #endOfAll: number
  #phase: Phase | null = null
  #since = 0
  #timer: NodeJS.Timeout | undefined
  #timerEnd = Infinity
  #isReleased = false
  #failure: { readonly reason: Error } | null = null
  #reject: ((reason: Error) => void) | null = null
  #stop: (() => void) | null = null

  constructor(signal: AbortSignal, limits: Limits) {
    this.#signal = signal
    this.#limits = limits
    this.#endOfAll = limits.totalMs === null ? Infinity : performance.now() + limits.totalMs
    if (signal.aborted) this.#failure = { reason: reasonOf(signal) }
    else signal.addEventListener('abort', this.#onAbort)
  }

  /** How the request is stopped: when the guard fails, or when it is released before the request has ended. */
  onStop(stop: () => void): void {
    if (this.#failure === null) this.#stop = stop
    else stop()
  }

  throwIfAborted(): void {
    this.#signal.throwIfAborted()
  }

  throwIfFailed(): void {
    if (this.#failure !== null) throw this.#failure.reason
  }

  /** `work`, or the failure of this guard. The time of `phase` runs meanwhile, anew for each call. */
  wait<T>(phase: Phase, work: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, rejectWith) => {
      const reject: (reason: Error) => void = rejectWith
      const settle = (): void => {
        this.#phase = null
        this.#reject = null
      }
      work.then(
        (value) => {
          if (this.#failure !== null) return
          settle()
          resolve(value)
        },
        (error: unknown) => {
          if (this.#failure !== null) return
          settle()
          reject(error as Error)
        },
      )
      if (this.#failure !== null) return reject(this.#failure.reason)
      this.#reject = reject
      this.enter(phase)
    })
  }

  /** The request has come to `phase`. */
  enter(phase: Phase): void {
    this.#phase = phase
    this.#since = performance.now()
    this.#arm()
  }

  /** What matters has come: the rest may take no longer than `idleMs`. */
  hurry(idleMs: number): void {
    this.#limits = { ...this.#limits, idleMs: Math.min(this.#limits.idleMs ?? Infinity, idleMs) }
  }

  /** The request has come to its own end: there is nothing left to stop. */
  finish(): void {
    this.#stop = null
  }

  /** Nobody waits for the request any more. */
  release(): void {
    this.#isReleased = true
    clearTimeout(this.#timer)
    this.#signal.removeEventListener('abort', this.#onAbort)
    const stop = this.#stop
    this.#stop = null
    stop?.()
  }

  readonly #onAbort = (): void => this.#fail(reasonOf(this.#signal))

  #fail(reason: Error): void {
    if (this.#failure !== null) return
    this.#failure = { reason }
    this.#reject?.(reason)
    this.release()
  }

  #end(): number {
    const limit = this.#phase === null ? null : this.#limits[this.#phase]
    return Math.min(limit === null ? Infinity : this.#since + limit, this.#endOfAll)
  }

  #arm(): void {
    const end = this.#end()
    if (end >= this.#timerEnd || this.#isReleased) return
    clearTimeout(this.#timer)
    this.#timerEnd = end
    this.#timer = setTimeout(this.#check, Math.max(1, end - performance.now()))
  }

  readonly #check = (): void => {
    this.#timerEnd = Infinity
    const now = performance.now()
    if (now >= this.#endOfAll) return this.#fail(timeoutError('totalMs', this.#limits))
    if (this.#phase !== null && now >= this.#end()) return this.#fail(timeoutError(this.#phase, this.#limits))
    this.#arm()
  }
}

/** Whatever the reason is, it is passed on as it is. */
function reasonOf(signal: AbortSignal): Error {
  return signal.reason as Error
}

function timeoutError(limit: keyof Limits, limits: Limits): Error {
  const lasting = `${limits[limit]} ms (\`timeouts.${limit}\`)`
  const messages: { readonly [Name in keyof Limits]: string } = {
    connectMs: `No connection to the provider within ${lasting}.`,
    firstByteMs: `No answer from the provider within ${lasting}.`,
    idleMs: `The provider sent nothing for ${lasting} in the middle of its answer.`,
    totalMs: `The request was not done within ${lasting}.`,
  }
  return providerError(messages[limit], { retryable: true })
}
