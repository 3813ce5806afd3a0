import { HarnessError, messageOf } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import { codeOf, connectionError } from './connection-error.js'
import { errorFromBody, providerError } from './errors.js'
import { RequestGuard } from './request-guard.js'
import type { Limits } from './request-guard.js'
import { WHOLE_REPLY } from './wire.js'
import type { Transport, WireChunk, WireReply, WireRequest } from './wire.js'

/** A method of an official client: resolves to the parsed reply, or to an async iterable of a stream's parsed events. */
export type ClientCall = (body: JsonObject, options: ClientCallOptions) => PromiseLike<unknown>

/** What the official clients take beside a body. */
export interface ClientCallOptions {
  readonly signal: AbortSignal
  /** The client must not repeat requests by itself: nobody would be told. */
  readonly maxRetries: 0
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Sends over a handed-in official client, which has its own key, base URL and connections. The time limits are ours: the
 * client's cover no more than the time to the headers, and hold beside ours. The client hides connecting, which is part
 * of the time to the first byte, and the keep-alive events of a stream, so that silence is counted between events.
 */
export class ClientTransport implements Transport {
  readonly bodies = 'json'
  readonly #call: ClientCall
  readonly #headers: Readonly<Record<string, string>>
  readonly #limits: Limits

  constructor(call: ClientCall, headers: Readonly<Record<string, string>>, limits: Limits) {
    this.#call = call
    this.#headers = headers
    this.#limits = limits
  }

  async send(request: WireRequest): Promise<WireReply> {
    const guard = new RequestGuard(request.signal, this.#limits)
    try {
      const json = await guard.wait('firstByteMs', this.#ask(request, guard))
      guard.finish()
      return { json, headers: {} }
    } finally {
      guard.release()
    }
  }

  async *stream(request: WireRequest): AsyncGenerator<readonly WireChunk[], void, void> {
    const guard = new RequestGuard(request.signal, this.#limits)
    try {
      const reply = await guard.wait('firstByteMs', this.#ask(request, guard))
      if (!isStream(reply)) {
        yield [{ event: WHOLE_REPLY, data: reply }]
        return
      }
      const events = reply[Symbol.asyncIterator]()
      // A client ends an aborted stream as if it were whole: the guard has failed before it can.
      for (;;) {
        const next: IteratorResult<unknown, unknown> = await guard.wait(
          'idleMs',
          failing(() => events.next(), true),
        )
        if (next.done === true) break
        yield [{ event: typeOf(next.value), data: next.value }]
      }
      guard.finish()
    } finally {
      guard.release()
    }
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #ask({ body, headers, signal }: WireRequest, guard: RequestGuard): Promise<unknown> {
    signal.throwIfAborted()
    const controller = new AbortController()
    guard.onStop(() => controller.abort())
    const options = { signal: controller.signal, maxRetries: 0, headers: { ...headers, ...this.#headers } } as const
    return failing(() => this.#call(body as JsonObject, options), false)
  }
}

function isStream(reply: unknown): reply is AsyncIterable<unknown> {
  return typeof reply === 'object' && reply !== null && Symbol.asyncIterator in reply
}

function typeOf(event: unknown): string | null {
  return isObject(event) && typeof event['type'] === 'string' ? event['type'] : null
}

async function failing<T>(work: () => PromiseLike<T>, midway: boolean): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw clientError(error, midway)
  }
}

/**
 * What an official client throws, as one kind: an answer with an error status (`status`, `headers`, `error`), an error
 * event in a stream (`error` without a status), a failed connection (neither; or the platform's own `TypeError`), broken
 * JSON (`SyntaxError`), or a misuse of the client itself.
 */
function clientError(thrown: unknown, midway: boolean): HarnessError {
  if (thrown instanceof HarnessError) return thrown
  if (thrown instanceof SyntaxError) {
    const message = `The provider sent an answer that is not JSON: ${thrown.message}`
    return providerError(message, { cause: thrown, retryable: true })
  }
  if (!(thrown instanceof Error)) return providerError(messageOf(thrown), { cause: thrown })
  if (!('status' in thrown)) {
    if (isOfConnection(thrown)) return connectionError(thrown, 'the provider', midway)
    return providerError(thrown.message, { cause: thrown })
  }
  const body = 'error' in thrown && thrown.error !== undefined ? thrown.error : undefined
  const headers = 'headers' in thrown ? headersOf(thrown.headers) : {}
  if (typeof thrown.status === 'number') {
    return errorFromBody(thrown.status, headers, body ?? thrown.message.replace(/^\d{3} /, ''))
  }
  return body === undefined ? connectionError(thrown, 'the provider', midway) : errorFromBody(200, headers, body)
}

/** What a platform's `fetch` and its bodies throw; a `TypeError` of any other kind is a mistake in a program. */
function isOfConnection(thrown: Error): boolean {
  const isOfFetch = thrown instanceof TypeError && /^(terminated|fetch failed|network)/i.test(thrown.message)
  return isOfFetch || codeOf(thrown) !== undefined
}

function headersOf(headers: unknown): Readonly<Record<string, string>> {
  if (headers instanceof Headers) return Object.fromEntries(headers)
  if (!isObject(headers)) return {}
  const texts = Object.entries(headers).filter((each): each is [string, string] => typeof each[1] === 'string')
  return Object.fromEntries(texts.map(([name, value]) => [name.toLowerCase(), value]))
}
