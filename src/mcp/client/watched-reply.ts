import { messageOf } from '../../contracts/errors.js'
import { isObject, parseJson } from '../../util/json.js'
import { LARGEST_MESSAGE } from './connection.js'

/**
 * A reply that fails if one of its messages is larger than 10 MiB. A stream of events that ends before the answer to its
 * request, and that cannot be resumed, ends in an error instead of the answer: the SDK would wait until the call times out.
 */
export function watchedReply(response: Response, init: RequestInit | undefined): Response {
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
