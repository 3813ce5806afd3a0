import { HarnessError } from '#contracts/errors.js'
import { joinedBytes, textOfBytes } from '#util/bytes.js'
import { isObject, parseJson } from '#util/json.js'
import { sleep } from '#util/timeout.js'
import { markUnsent, notJson, providerError } from '../http/provider-errors.js'
import { WHOLE_REPLY } from '../http/wire-format.js'
import type { Transport, TransportRequest, WireChunk } from '../http/wire-format.js'
import { stringIn } from '../wire/wire-fields.js'

/** Time before the provider is asked for the first time, and at most between two times, in ms. */
const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 10_000
/** Failed questions in a row after which the response is given up for this attempt. */
const MOST_FAILURES = 8
const CANCEL_MS = 10_000

/**
 * Responses that the provider works on in the background. A response has an id as soon as the request is accepted: a lost connection, or
 * another process, asks for that one again, and no second request is made. An abort cancels it, unless the run is left for another process.
 */
export class BackgroundTransport implements Transport {
  readonly bodies = 'bytes'
  readonly #http: Transport
  /** The response that an earlier attempt at the same request has begun. */
  #begun: { readonly id: string; readonly request: string } | null = null
  /** The last response that has ended, or is not there any more. */
  #over: string | null = null

  constructor(http: Transport) {
    this.#http = http
  }

  async send(request: TransportRequest): Promise<unknown> {
    const known = this.#known(request)
    const reply = known === null ? null : await this.#ended(known, request)
    return reply ?? this.#submit(request)
  }

  async *stream(request: TransportRequest): AsyncGenerator<readonly WireChunk[], void, void> {
    const known = this.#known(request)
    const reply = known === null ? null : await this.#ended(known, request)
    if (reply === null) yield* this.#live(request)
    else yield [{ event: WHOLE_REPLY, data: reply }]
  }

  async connect(to: Pick<TransportRequest, 'path' | 'headers'>): Promise<void> {
    await this.#http.connect?.(to)
  }

  close(): Promise<void> {
    return this.#http.close()
  }

  #known({ resume, body }: TransportRequest): string | null {
    const { id, request } = this.#begun ?? {}
    if (id !== undefined && request === requestText(body)) return id
    return this.#begun !== null || resume === undefined || resume === this.#over ? null : resume
  }

  async #submit(request: TransportRequest): Promise<unknown> {
    const reply = await this.#http.send(request)
    if (!isPending(reply)) return reply
    const id = stringIn(reply['id'])
    await this.#note(id, request)
    return (await this.#ended(id, request)) ?? reply
  }

  async #note(id: string, { body, submitted }: TransportRequest): Promise<void> {
    this.#begun = { id, request: requestText(body) }
    await submitted?.(id)
  }

  /** The response as it comes. When its stream is cut, the next attempt asks for the whole of it. */
  async *#live(request: TransportRequest): AsyncGenerator<readonly WireChunk[], void, void> {
    let id: string | null = null
    let hasEnded = false
    try {
      for await (const chunks of this.#http.stream(request)) {
        const begun: string | null = id === null ? idIn(chunks) : null
        if (begun !== null) await this.#note((id = begun), request)
        const [{ event, data } = {}] = chunks
        if (begun !== null && event === WHOLE_REPLY) {
          hasEnded = true
          yield [{ event, data: (await this.#ended(begun, request)) ?? data }]
          return
        }
        hasEnded ||= chunks.some(endsResponse)
        if (hasEnded) this.#begun = null
        yield chunks
      }
    } catch (error) {
      request.signal.throwIfAborted()
      if (id === null || !isOfConnection(error)) throw error
    } finally {
      if (id !== null && !hasEnded) this.#cancelIfAborted(id, request)
    }
    if (!hasEnded && id !== null) throw cutStream()
  }

  /** The response once it has ended; null if the provider does not have it any more. */
  async #ended(id: string, request: TransportRequest): Promise<unknown> {
    const { path, headers, signal } = request
    let failures = 0
    try {
      for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 1.6, LONGEST_WAIT_MS)) {
        await sleep(waitMs, signal)
        try {
          const text = await this.#call({ path: `${path}/${id}`, method: 'GET', headers, signal })
          const parsed = parseJson(text)
          if (!parsed.ok) throw notJson(new Error(parsed.problem))
          failures = 0
          if (isPending(parsed.value)) continue
          this.#begun = null
          this.#over = id
          return parsed.value
        } catch (error) {
          signal.throwIfAborted()
          if (error instanceof HarnessError && error.status === 404) {
            this.#over = id
            return (this.#begun = null)
          }
          if (!(error instanceof HarnessError) || !error.retryable || ++failures > MOST_FAILURES) throw error
        }
      }
    } finally {
      this.#cancelIfAborted(id, request)
    }
  }

  #cancelIfAborted(id: string, { path, headers, signal }: TransportRequest): void {
    const reason: unknown = signal.reason
    if (!signal.aborted || (reason instanceof HarnessError && reason.code === 'interrupted')) return
    const within = AbortSignal.timeout(CANCEL_MS)
    // Nobody waits for it: it has ended already, or the provider is out of reach.
    this.#call({ path: `${path}/${id}/cancel`, method: 'POST', headers, signal: within }).catch(() => undefined)
  }

  async #call(request: Omit<Parameters<NonNullable<Transport['call']>>[0], 'body'>): Promise<string> {
    if (this.#http.call === undefined) throw providerError('The connection has no requests other than for replies.', {})
    return this.#http.call({ ...request, body: [] })
  }
}

const ENDS = /^(?:response\.(?:completed|incomplete|failed|cancelled)|error)$/

function requestText(body: TransportRequest['body']): string {
  return textOfBytes(joinedBytes(body as readonly Uint8Array[]))
}

function isPending(reply: unknown): reply is Readonly<Record<string, unknown>> {
  return isObject(reply) && /^(?:queued|in_progress)$/.test(stringIn(reply['status'])) && stringIn(reply['id']) !== ''
}

function endsResponse({ event, data }: WireChunk): boolean {
  return ENDS.test((isObject(data) ? stringIn(data['type']) : '') || (event ?? ''))
}

function idIn(chunks: readonly WireChunk[]): string | null {
  for (const { event, data } of chunks) {
    const response = isObject(data) && event !== WHOLE_REPLY ? data['response'] : data
    if (isPending(response)) return stringIn(response['id'])
  }
  return null
}

function isOfConnection(error: unknown): boolean {
  return error instanceof HarnessError && (error.failure === 'connection' || error.failure === 'timeout')
}

/** Its tokens are counted by the attempt that gets the whole. */
function cutStream(): HarnessError {
  const message = 'The stream of the background response was cut: the response is asked for again.'
  return markUnsent(providerError(message, { retryable: true, retryAfterMs: 0, failure: 'connection' }))
}
