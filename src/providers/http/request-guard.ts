import { markUnsent, providerError } from './provider-errors.js'
import type { TimeLimits } from './options.js'
import type { TransportRequest } from './wire-format.js'

type Phase = 'connectMs' | 'firstByteMs' | 'idleMs'

/**
 * Ends one request that takes too long or is aborted, at once and only once. Code that waits for the request waits
 * through the guard, and so never longer than the limits allow, even if the request itself cannot be stopped.
 *
 * One timer serves all limits. It checks the clock when it fires and is only replaced if a limit ends earlier, so a
 * stream of a million chunks does not create a timer for each.
 */
export class RequestGuard {
  readonly #signal: AbortSignal
  #limits: TimeLimits
  readonly #totalEnd: number
  /** The phase that a reader is waiting in. */
  #phase: Phase | null = null
  #phaseEnd = Infinity
  #timer: NodeJS.Timeout | undefined
  #timerEnd = Infinity
  #isReleased = false
  #isFree = false
  #failure: { readonly reason: Error } | null = null
  #reject: ((reason: Error) => void) | null = null
  #stop: (() => void) | null = null

  constructor({ signal, idleMs }: Pick<TransportRequest, 'signal' | 'idleMs'>, limits: TimeLimits) {
    this.#signal = signal
    this.#limits = idleMs === undefined ? limits : { ...limits, ...atMost(limits, idleMs) }
    this.#totalEnd = limits.totalMs === null ? Infinity : performance.now() + limits.totalMs
    if (signal.aborted) this.#failure = { reason: abortReason(signal) }
    else signal.addEventListener('abort', this.#onAbort)
  }

  /** Registers how to stop the request if the guard fails, or is released before the request has ended. */
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

  /**
   * The result of `work`, within the limit of `phase`. Rejects with the failure of this guard, or with the error of
   * `work` as `explain` describes it.
   */
  async wait<T>(phase: Phase, work: () => PromiseLike<T>, explain?: (error: unknown) => Error): Promise<T> {
    this.throwIfFailed()
    this.enter(phase)
    try {
      return await new Promise<T>((resolve, reject) => {
        this.#reject = reject
        work().then(resolve, reject)
      })
    } catch (error) {
      this.throwIfFailed()
      throw explain === undefined ? error : explain(error)
    } finally {
      this.#phase = null
      this.#phaseEnd = Infinity
      this.#reject = null
    }
  }

  /** The request has reached `phase`, whose time starts now. */
  enter(phase: Phase): void {
    const now = performance.now()
    this.#phase = phase
    this.#phaseEnd = now + (this.#limits[phase] ?? Infinity)
    this.#arm(now)
  }

  /** The server charges nothing: a request that timed out may be repeated. */
  markAsFree(): void {
    this.#isFree = true
  }

  /** The reply is complete: the rest may take no longer than `idleMs`. */
  hurry(idleMs: number): void {
    this.#limits = { ...this.#limits, idleMs: Math.min(this.#limits.idleMs ?? Infinity, idleMs) }
  }

  /** The request has ended by itself: nothing is left to stop. */
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

  readonly #onAbort = (): void => this.#fail(abortReason(this.#signal))

  #fail(reason: Error): void {
    if (this.#failure !== null) return
    this.#failure = { reason }
    this.#reject?.(reason)
    this.release()
  }

  #arm(now: number): void {
    const end = Math.min(this.#phaseEnd, this.#totalEnd)
    if (end >= this.#timerEnd || this.#isReleased) return
    clearTimeout(this.#timer)
    this.#timerEnd = end
    this.#timer = setTimeout(this.#check, Math.max(1, end - now))
  }

  #timeOut(limit: keyof TimeLimits): void {
    const error = timeoutError(limit, this.#limits)
    if (this.#phase === 'connectMs') markUnsent(error)
    else if (!this.#isFree) charged.add(error)
    this.#fail(error)
  }

  readonly #check = (): void => {
    this.#timerEnd = Infinity
    const now = performance.now()
    if (now >= this.#totalEnd) return this.#timeOut('totalMs')
    if (this.#phase !== null && now >= this.#phaseEnd) return this.#timeOut(this.#phase)
    this.#arm(now)
  }
}

/** Timeouts of requests that had been sent: the provider may have worked on them, and may charge for that. */
const charged = new WeakSet<Error>()

/** True if `error` is the timeout of a request that the provider may charge for. It is left to the caller to repeat it. */
export function mayBeCharged(error: Error): boolean {
  return charged.has(error)
}

/** The reason of an abort, passed on unchanged. */
function abortReason(signal: AbortSignal): Error {
  return signal.reason as Error
}

function timeoutError(limit: keyof TimeLimits, limits: TimeLimits): Error {
  const time = `${limits[limit]} ms (\`timeouts.${limit}\`)`
  const messages: { readonly [Name in keyof TimeLimits]: string } = {
    connectMs: `No connection to the provider within ${time}.`,
    firstByteMs: `No answer from the provider within ${time}.`,
    idleMs: `The provider sent nothing for ${time} in the middle of its answer.`,
    totalMs: `The request was not done within ${time}.`,
  }
  return providerError(messages[limit], { retryable: true, failure: 'timeout' })
}

/** The limits of one request, which has a shorter one. */
function atMost({ firstByteMs, idleMs }: TimeLimits, most: number): Pick<TimeLimits, 'firstByteMs' | 'idleMs'> {
  return { firstByteMs: Math.min(firstByteMs ?? most, most), idleMs: Math.min(idleMs ?? most, most) }
}
