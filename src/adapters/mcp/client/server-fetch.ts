import { messageOf } from '#contracts/errors.js'
import { isObject, parseJson } from '#util/json.js'
import { LARGEST_MESSAGE } from '../sdk/connection.js'

/** Headers of every request to a server; as a function, asked for each, for tokens that change. */
export type McpHeaders =
  | Readonly<Record<string, string>>
  | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>)

/**
 * A `fetch` for one server: adds its headers to requests to its origin and to no other, also after a redirect, and fails
 * a reply in which one message is larger than 10 MiB, or that ends without its answer.
 */
export function serverFetch(server: URL, headers: McpHeaders, base: typeof fetch = fetch): typeof fetch {
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input)
    const own = url.origin !== server.origin ? {} : typeof headers === 'function' ? await headers() : headers
    if (Object.keys(own).length === 0) return watchedReply(await base(input, init), init)
    const all = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
    for (const [name, value] of Object.entries(own)) if (!all.has(name)) all.set(name, value)
    return watchedReply(await sentWithin(server.origin, base, { input, init: { ...init, headers: all } }), init)
  }
}

/**
 * Sends a request with the server's headers: the platform's `fetch` would send most of them to another host too. A redirect
 * that keeps the method is followed within the origin; any other is an error with instructions.
 */
async function sentWithin(
  origin: string,
  base: typeof fetch,
  { input, init }: { readonly input: string | URL | Request; readonly init: RequestInit },
): Promise<Response> {
  let target = input
  for (let hop = 0; hop <= MOST_REDIRECTS; hop++) {
    const response = await base(target, { ...init, redirect: 'manual' })
    const location = response.status >= 300 && response.status < 400 ? response.headers.get('location') : null
    if (location === null) return response
    await response.body?.cancel()
    const from = new URL(target instanceof Request ? target.url : target)
    const to = URL.canParse(location, from.href) ? new URL(location, from) : null
    const keepsMethod = [307, 308].includes(response.status) || (init.method ?? 'GET') === 'GET'
    if (to?.origin !== origin || !keepsMethod || target instanceof Request) {
      throw new Error(
        `It redirects to \`${to === null ? 'no address' : to.origin + to.pathname}\`: give that as its \`url\`.`,
      )
    }
    target = to
  }
  throw new Error(`It redirects more than ${MOST_REDIRECTS} times.`)
}

const MOST_REDIRECTS = 5

/**
 * A reply that fails if one of its messages is larger than 10 MiB. A stream of events that ends before the answer to its
 * request, and that cannot be resumed, ends in an error instead of the answer: the SDK would wait until the call times out.
 */
function watchedReply(response: Response, init: RequestInit | undefined): Response {
  if (response.body === null) return response
  const isEvents = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  const { status, statusText, headers } = response
  const body = watchedStream(response.body, {
    limit: new MessageLimit(isEvents),
    answer: isEvents ? expectedAnswer(init) : null,
  })
  const whole = new Response(body, { status, statusText, headers })
  Object.defineProperty(whole, 'url', { value: response.url })
  Object.defineProperty(whole, 'redirected', { value: response.redirected })
  return whole
}

interface Watch {
  readonly limit: MessageLimit
  /** Null if no answer is expected. */
  readonly answer: AwaitedAnswer | null
}

function watchedStream(source: ReadableStream<Uint8Array>, { limit, answer }: Watch): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (value !== undefined) {
          limit.take(value)
          answer?.take(value)
          controller.enqueue(value)
        }
        if (!done) return
        if (answer?.isMissing === true) controller.enqueue(answer.failure('It ended its reply without an answer.'))
        controller.close()
      } catch (error) {
        void reader.cancel(error).catch(() => undefined)
        if (answer?.isMissing !== true) {
          controller.error(error)
          return
        }
        controller.enqueue(answer.failure(messageOf(error)))
        controller.close()
      }
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

function expectedAnswer(init: RequestInit | undefined): AwaitedAnswer | null {
  const request = typeof init?.body === 'string' ? parseJson(init.body) : null
  if (request?.ok !== true || !isObject(request.value)) return null
  const { id, method } = request.value
  const isRequest = method !== undefined && (typeof id === 'string' || typeof id === 'number')
  return isRequest ? new AwaitedAnswer(id, init?.signal ?? null) : null
}

/** Detects the answer to a request in a stream. */
class AwaitedAnswer {
  readonly #id: string | number
  readonly #signal: AbortSignal | null
  #tail = ''
  #isSettled = false

  constructor(id: string | number, signal: AbortSignal | null) {
    this.#id = id
    this.#signal = signal
  }

  /** No answer, no event after which a client could reconnect, and a request that is still open. */
  get isMissing(): boolean {
    return !this.#isSettled && this.#signal?.aborted !== true
  }

  /** Anything that looks like an answer settles it. */
  take(bytes: Uint8Array): void {
    if (this.#isSettled) return
    const text = this.#tail + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
    this.#isSettled = /"(?:result|error)"\s*:|^id:/m.test(text)
    this.#tail = text.slice(-32)
  }

  /** The error that the SDK understands as a closed connection, as an event of its own. */
  failure(reason: string): Uint8Array {
    const error = { code: -32000, message: `Connection closed. ${reason}`.trim() }
    return Buffer.from(`\n\nevent: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: this.#id, error })}\n\n`)
  }
}

/** Counts the bytes of a message; in a stream of events the count restarts after each empty line. */
class MessageLimit {
  readonly #isEvents: boolean
  #bytes = 0
  #endsInNewline = false

  constructor(isEvents: boolean) {
    this.#isEvents = isEvents
  }

  take(chunk: Uint8Array): void {
    const end = this.#isEvents ? lastEventEnd(chunk, this.#endsInNewline) : -1
    this.#bytes = end === -1 ? this.#bytes + chunk.length : chunk.length - end
    this.#endsInNewline = chunk.at(-1) === NEWLINE || (chunk.at(-1) === RETURN && this.#endsInNewline)
    if (this.#bytes > LARGEST_MESSAGE) throw new Error(`A message is larger than ${LARGEST_MESSAGE} bytes.`)
  }
}

const NEWLINE = 10
const RETURN = 13

/** End of the last event of a chunk (after an empty line), or -1. */
function lastEventEnd(chunk: Uint8Array, afterNewline: boolean): number {
  for (
    let index = chunk.lastIndexOf(NEWLINE);
    index >= 0;
    index = index === 0 ? -1 : chunk.lastIndexOf(NEWLINE, index - 1)
  ) {
    const before = chunk[index - 1] === RETURN ? index - 2 : index - 1
    if (before < 0 ? afterNewline : chunk[before] === NEWLINE) return index + 1
  }
  return -1
}
