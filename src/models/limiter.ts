import { HarnessError } from '#contracts/errors.js'
import type { RequestWait } from '#contracts/attempt.js'
import { listenToAbort } from '#util/abort.js'
import { limitsIn, waitFor } from './rate-headers.js'
import type { ToldLimit, ToldLimits } from './rate-headers.js'

/** A limiter of `rate-limiter-flexible`, as far as it is used here: it rejects with `msBeforeNext` if a key has used up its points. */
export interface RateLimiterStore {
  consume(key: string, points?: number): Promise<unknown>
}

/** A limiter for each count. */
export interface LimiterStores {
  readonly requests?: RateLimiterStore | undefined
  readonly tokens?: RateLimiterStore | undefined
}

export interface LimitedOptions {
  /** Requests in progress at once, in this process. Default: no limit. */
  readonly concurrency?: number | undefined
  /** Requests in any minute. Default: no limit. */
  readonly requestsPerMinute?: number | undefined
  /** Tokens of input and output in any minute; those of a request in progress are estimated. Default: no limit. */
  readonly tokensPerMinute?: number | undefined
  /** The longest wait for a limit, in ms; a request that would wait longer fails with `rate_limit`. Default: any. */
  readonly maxWaitMs?: number | undefined
  /**
   * Counts in place of this process, for several of them: a limiter of `rate-limiter-flexible`, whose points are requests, or tokens
   * if only `tokensPerMinute` is given; or one for each. If it fails, requests are let through, with a warning. Default: none.
   */
  readonly store?: RateLimiterStore | LimiterStores | undefined
}

/** A request that asks for its turn. */
export interface Waiter {
  /** Of one run: runs take turns. */
  readonly run: object
  readonly tokens: number
  readonly signal: AbortSignal
  readonly waiting: ((wait: RequestWait) => void) | undefined
  readonly warn: ((message: string) => void) | undefined
}

/** A request that was let through. */
export interface Admitted {
  /** It used so many tokens; null: the estimate stays. */
  measure(tokens: number | null): void
  /** It has ended. */
  end(): void
}

interface Waiting extends Waiter {
  /** 1; 0: it goes on a request that is in progress. */
  readonly places: number
  readonly begin: (admitted: Admitted) => void
  readonly fail: (error: Error) => void
  /** The reason that it was told. */
  told: string
  /** The store has counted it as a request. */
  isCounted: boolean
}

interface Sent {
  readonly at: number
  tokens: number
}

const MINUTE_MS = 60_000

/** Lets requests through as the limits allow. Runs that wait take turns: the one that was served longest ago is next. */
export class Limiter {
  readonly #options: LimitedOptions
  readonly #name: string
  readonly #waiting: Waiting[] = []
  /** When each run was served last, counted. */
  readonly #served = new WeakMap<object, number>()
  /** Requests of the last minute, oldest first. */
  readonly #sent: Sent[] = []
  #told: ToldLimits = { requests: null, tokens: null, pausedUntil: null }
  #count = 0
  #active = 0
  #timer: NodeJS.Timeout | undefined
  /** The store is being asked. */
  #isAsking = false
  /** Mean duration of a request, in ms. */
  #meanMs = 0

  constructor(name: string, options: LimitedOptions) {
    this.#name = name
    this.#options = options
  }

  /** Resolves when the request may be sent. `counts` false: it goes on one that is in progress, such as a repetition. */
  enter(waiter: Waiter, counts = true): Promise<Admitted> {
    return new Promise((resolve, reject) => {
      waiter.signal.throwIfAborted()
      const stop = listenToAbort(waiter.signal, () => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
        waiting.fail(waiter.signal.reason as Error)
        this.#serve()
      })
      const waiting: Waiting = {
        ...waiter,
        ...{ places: counts ? 1 : 0, told: '', isCounted: false },
        begin: (admitted) => {
          stop()
          resolve(admitted)
        },
        fail: (error) => {
          stop()
          reject(error)
        },
      }
      this.#waiting.push(waiting)
      this.#serve()
    })
  }

  /** Learns from the headers of an answer. */
  learn(headers: Readonly<Record<string, string>>): void {
    const { requests, tokens, pausedUntil } = limitsIn(headers, Date.now())
    // Of requests that are on their way the provider knows nothing yet.
    const others = Math.max(0, this.#active - 1)
    const less = requests && { ...requests, remaining: requests.remaining - others }
    const until = Math.max(this.#told.pausedUntil ?? 0, pausedUntil ?? 0)
    this.#told = { requests: less ?? this.#told.requests, tokens: tokens ?? this.#told.tokens, pausedUntil: until }
  }

  #serve(): void {
    clearTimeout(this.#timer)
    while (this.#waiting.length > 0 && !this.#isAsking) {
      const next = this.#next()
      const wait = this.#waitOf(next)
      if (wait !== null && wait.ms > (this.#options.maxWaitMs ?? Infinity)) {
        this.#waiting.splice(this.#waiting.indexOf(next), 1)
        next.fail(this.#tooLong(wait.ms))
        continue
      }
      if (wait !== null) {
        for (const each of this.#waiting) this.#tell(each, wait)
        if (wait.reason === 'rate_limit') this.#timer = setTimeout(() => this.#serve(), Math.max(1, wait.ms))
        return
      }
      if (this.#options.store !== undefined) return void this.#askStore(next)
      this.#admit(next)
    }
  }

  /** Of the run that was served longest ago; a request in progress goes on first. */
  #next(): Waiting {
    const [first, ...rest] = this.#waiting
    if (first === undefined) throw new RangeError('Expected a request that waits.')
    const rank = ({ run, places }: Waiting): number => (places === 0 ? -1 : (this.#served.get(run) ?? 0))
    return rest.reduce((best, each) => (rank(each) < rank(best) ? each : best), first)
  }

  /** Why it has to wait, and how long probably; null: not at all. */
  #waitOf({ places, tokens }: Waiting): RequestWait | null {
    const { concurrency = Infinity, requestsPerMinute = Infinity, tokensPerMinute = Infinity, store } = this.#options
    if (places === 1 && this.#active >= concurrency) return { reason: 'concurrency', ms: Math.round(this.#meanMs) }
    const now = Date.now()
    while ((this.#sent[0]?.at ?? now) <= now - MINUTE_MS) this.#sent.shift()
    const told = [
      (this.#told.pausedUntil ?? 0) - now,
      toldWait(this.#told.requests, 1, now),
      toldWait(this.#told.tokens, tokens, now),
    ]
    const counted =
      store === undefined
        ? [this.#untilFewer(requestsPerMinute, now), this.#untilLess(tokensPerMinute, tokens, now)]
        : []
    const ms = Math.max(0, ...told, ...counted)
    return ms > 0 ? { reason: 'rate_limit', ms: Math.ceil(ms) } : null
  }

  #untilFewer(most: number, now: number): number {
    const oldest = this.#sent[this.#sent.length - most]
    return oldest === undefined ? 0 : oldest.at + MINUTE_MS - now
  }

  /** A request that has more tokens than the limit is let through alone. */
  #untilLess(most: number, tokens: number, now: number): number {
    let sum = this.#sent.reduce((all, each) => all + each.tokens, 0)
    for (const each of this.#sent) {
      if (sum + tokens <= most) return 0
      sum -= each.tokens
      if (sum + tokens <= most || sum === 0) return each.at + MINUTE_MS - now
    }
    return 0
  }

  #tooLong(retryAfterMs: number): HarnessError {
    const message = `\`${this.#name}\` is at its limit: a request would wait for ${retryAfterMs} ms, longer than \`maxWaitMs\` allows.`
    return new HarnessError('provider_error', message, { failure: 'rate_limit', retryable: true, retryAfterMs })
  }

  #tell(waiting: Waiting, wait: RequestWait): void {
    if (waiting.told === wait.reason) return
    waiting.told = wait.reason
    waiting.waiting?.(wait)
  }

  #admit(waiting: Waiting): void {
    this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
    this.#served.set(waiting.run, (this.#count += 1))
    const begun = Date.now()
    const sent: Sent = { at: begun, tokens: waiting.tokens }
    this.#sent.push(sent)
    const { requests, tokens } = this.#told
    this.#told = { ...this.#told, requests: taken(requests, 1), tokens: taken(tokens, waiting.tokens) }
    this.#active += waiting.places
    let hasEnded = false
    waiting.begin({
      measure: (used) => {
        sent.tokens = used ?? sent.tokens
      },
      end: () => {
        if (hasEnded) return
        hasEnded = true
        this.#active -= waiting.places
        const ms = Date.now() - begun
        this.#meanMs = this.#meanMs === 0 ? ms : this.#meanMs * 0.8 + ms * 0.2
        this.#serve()
      },
    })
  }

  /** Asks for one request after the other, so that their order stays. */
  async #askStore(next: Waiting): Promise<void> {
    this.#isAsking = true
    const waitMs = await this.#consume(next)
    this.#isAsking = false
    if (waitMs > 0) {
      this.#told = { ...this.#told, pausedUntil: Date.now() + waitMs }
    } else if (this.#waiting.includes(next)) this.#admit(next)
    this.#serve()
  }

  /** How long it has to wait, in ms. */
  async #consume(waiting: Waiting): Promise<number> {
    const { tokens, warn } = waiting
    const { requestsPerMinute, tokensPerMinute, store = {} } = this.#options
    const countsTokens = requestsPerMinute === undefined && tokensPerMinute !== undefined
    const stores = 'consume' in store ? (countsTokens ? { tokens: store } : { requests: store }) : store
    try {
      if (!waiting.isCounted) await stores.requests?.consume(`${this.#name}:requests`, 1)
      waiting.isCounted = true
      await stores.tokens?.consume(`${this.#name}:tokens`, tokens)
      return 0
    } catch (refused) {
      const ms: unknown = typeof refused === 'object' && refused !== null && Reflect.get(refused, 'msBeforeNext')
      if (typeof ms === 'number') return Math.max(1, ms)
      const reason = refused instanceof Error ? refused.message : 'an unknown error'
      warn?.(`The store of the limits of \`${this.#name}\` failed, so requests are not counted: ${reason}`)
      return 0
    }
  }
}

function toldWait(told: ToldLimit | null, needed: number, now: number): number {
  return told === null ? 0 : waitFor(told, needed, now)
}

function taken(told: ToldLimit | null, count: number): ToldLimit | null {
  return told === null ? null : { ...told, remaining: told.remaining - count }
}
