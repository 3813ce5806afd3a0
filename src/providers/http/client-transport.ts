import { HarnessError, messageOf } from '#contracts/errors.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { connectionError, isConnectionFailure, errorFromBody, notJson, providerError } from './provider-errors.js'
import { flatHeaders } from './exchange.js'
import { withCallers } from './endpoint.js'
import { REST_AFTER_REPLY_MS } from './http-transport.js'
import { RequestGuard } from './request-guard.js'
import type { TimeLimits } from './options.js'
import { WHOLE_REPLY } from './wire-format.js'
import type { Transport, WireChunk, TransportRequest } from './wire-format.js'

/** A method of an official client: resolves to the parsed reply, or to an async iterable of a stream's parsed events. */
export type ClientMethod = (body: JsonObject, options: ClientCallOptions) => PromiseLike<unknown>

/** The request options of the official clients. */
export interface ClientCallOptions {
  readonly signal: AbortSignal
  /** The client must not retry by itself: its retries could not be reported. */
  readonly maxRetries: 0
  readonly headers: Readonly<Record<string, string>>
}

/** The method of an official client at `path`, such as `responses.create`. Throws `invalid_options` if it has none. */
export function clientCall(client: object, path: string): ClientMethod {
  let owner: unknown = client
  let method: unknown = client
  for (const name of path.split('.')) {
    owner = method
    method = memberOf(owner, name)
  }
  if (typeof method !== 'function') {
    const message = `Expected \`client\` to be a client with a method \`${path}\`, got one without it.`
    throw new HarnessError('invalid_options', message)
  }
  const call = method as ClientMethod
  return (body, options) => call.call(owner, body, options)
}

function memberOf(value: unknown, name: string): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined
  return (value as Readonly<Record<string, unknown>>)[name]
}

/**
 * Sends with an official client, which has its own key, base URL and connections. The time limits of this library apply
 * in addition to the client's, which cover only the time to the headers. The client hides connecting, which is part of
 * the time to the first byte, and the keep-alive events of a stream, so idle time is measured between events.
 */
export class ClientTransport implements Transport {
  readonly bodies = 'json'
  readonly #call: ClientMethod
  readonly #headers: Readonly<Record<string, string>>
  readonly #limits: TimeLimits

  constructor(call: ClientMethod, headers: Readonly<Record<string, string>>, limits: TimeLimits) {
    this.#call = call
    this.#headers = headers
    this.#limits = limits
  }

  async send(request: TransportRequest): Promise<unknown> {
    const guard = new RequestGuard(request, this.#limits)
    try {
      const reply = await this.#ask(request, guard)
      guard.finish()
      return reply
    } finally {
      guard.release()
    }
  }

  async *stream(request: TransportRequest): AsyncGenerator<readonly WireChunk[], void, void> {
    const guard = new RequestGuard(request, this.#limits)
    try {
      const reply = await this.#ask(request, guard)
      if (!isStream(reply)) {
        yield [{ event: WHOLE_REPLY, data: reply }]
        return
      }
      const events = reply[Symbol.asyncIterator]()
      const nextEvent = (): Promise<IteratorResult<unknown, unknown>> => events.next()
      // A client ends an aborted stream as if it were complete: the guard has failed before it can.
      for (;;) {
        const { done, value } = await nextOf(nextEvent, request, guard)
        if (done === true) break
        yield [{ event: eventType(value), data: value }]
      }
      guard.finish()
    } finally {
      guard.release()
    }
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #ask({ body, headers }: TransportRequest, guard: RequestGuard): Promise<unknown> {
    guard.throwIfFailed()
    const controller = new AbortController()
    guard.onStop(() => controller.abort())
    const options = { signal: controller.signal, maxRetries: 0, headers: withCallers(headers, this.#headers) } as const
    return guard.wait(
      'firstByteMs',
      () => this.#call(body as JsonObject, options),
      (error) => clientError(error, false),
    )
  }
}

/** The next event. The end of a complete reply is not required. */
async function nextOf<T>(
  next: () => Promise<IteratorResult<T, unknown>>,
  { isComplete }: TransportRequest,
  guard: RequestGuard,
): Promise<IteratorResult<T, unknown>> {
  const ends = isComplete?.() === true
  if (ends) guard.hurry(REST_AFTER_REPLY_MS)
  try {
    return await guard.wait('idleMs', next, (error) => clientError(error, true))
  } catch (error) {
    if (!ends) throw error
    guard.throwIfAborted()
    return { done: true, value: undefined }
  }
}

function isStream(reply: unknown): reply is AsyncIterable<unknown> {
  return typeof reply === 'object' && reply !== null && Symbol.asyncIterator in reply
}

function eventType(event: unknown): string | null {
  return isObject(event) && typeof event['type'] === 'string' ? event['type'] : null
}

/**
 * The error of an official client as a `provider_error`. A client throws for an answer with an error status (`status`,
 * `headers`, `error`), an error event in a stream (`error` without a status), a failed connection (neither; or the
 * platform's own `TypeError`), broken JSON (`SyntaxError`), or a misuse of the client itself.
 */
function clientError(thrown: unknown, midway: boolean): HarnessError {
  if (thrown instanceof HarnessError) return thrown
  if (thrown instanceof SyntaxError) return notJson(thrown)
  if (!(thrown instanceof Error)) return providerError(messageOf(thrown), { cause: thrown })
  if (!('status' in thrown)) {
    if (isConnectionFailure(thrown)) return connectionError(thrown, 'the provider', midway)
    return providerError(thrown.message, { cause: thrown })
  }
  const body = 'error' in thrown && thrown.error !== undefined ? thrown.error : undefined
  const headers = 'headers' in thrown ? headersOf(thrown.headers) : {}
  if (typeof thrown.status === 'number') {
    return errorFromBody(thrown.status, headers, body ?? thrown.message.replace(/^\d{3} /, ''))
  }
  return body === undefined ? connectionError(thrown, 'the provider', midway) : errorFromBody(200, headers, body)
}

function headersOf(headers: unknown): Readonly<Record<string, string>> {
  if (headers instanceof Headers) return Object.fromEntries(headers)
  return isObject(headers) ? flatHeaders(headers) : {}
}
