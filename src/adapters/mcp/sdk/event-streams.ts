/** Shortest and longest time before a stream is opened again, in ms. */
const FLOOR_MS = 1_000
const LONGEST_MS = 60_000
/** The same floor for the rest of an answer. */
const RESUMED_FLOOR_MS = 100

/**
 * The streams of events of one connection over HTTP. A stream that brought nothing is opened again later each time, whatever the server says
 * of the time; and a request leaves no listener on the signal for the life of the connection.
 */
export class EventStreams {
  readonly #base: typeof fetch
  /** The last streams that brought nothing, in a row. */
  #empty = 0
  /** The last stream that ended was the beginning of an answer. */
  #isAnswer = false
  /** Events after which an answer continues. */
  readonly #open = new Set<string>()

  constructor(base: typeof fetch) {
    this.#base = base
  }

  readonly fetch: typeof fetch = async (input, init) => {
    const { signal } = init ?? {}
    const own = new AbortController()
    const abort = (): void => own.abort(signal?.reason)
    const release = (): void => signal?.removeEventListener('abort', abort)
    signal?.addEventListener('abort', abort, { once: true })
    if (signal?.aborted === true) abort()
    try {
      const response = await this.#base(input, { ...init, signal: own.signal })
      if (response.body === null) {
        release()
        return response
      }
      const isEvents = response.headers.get('content-type')?.startsWith('text/event-stream') === true
      const watch = isEvents ? this.#watch(init) : null
      return withBody(response, passedBody(response.body, watch, release))
    } catch (error) {
      release()
      throw error
    }
  }

  /** For the SDK: opens a stream again after `delayMs` at least. */
  readonly reopen = (reconnect: () => void, delayMs: number): (() => void) => {
    const floor = this.#isAnswer ? RESUMED_FLOOR_MS : FLOOR_MS
    const timer = setTimeout(reconnect, Math.min(LONGEST_MS, Math.max(floor, delayMs) * 2 ** Math.min(this.#empty, 6)))
    return () => clearTimeout(timer)
  }

  #watch(init: RequestInit | undefined): StreamWatch {
    const isAnswer = init?.method === 'POST' || this.#open.has(new Headers(init?.headers).get('last-event-id') ?? '')
    let hasData = false
    return {
      take: (text) => {
        hasData ||= /^data: ?\S/m.test(text)
        if (isAnswer) for (const [, id = ''] of text.matchAll(/^id: ?(.+)$/gm)) this.#open.add(id.trim())
      },
      end: () => {
        this.#isAnswer = isAnswer
        this.#empty = hasData || init?.method === 'POST' ? 0 : this.#empty + 1
      },
    }
  }
}

interface StreamWatch {
  readonly take: (text: string) => void
  readonly end: () => void
}

function passedBody(
  source: ReadableStream<Uint8Array>,
  watch: StreamWatch | null,
  release: () => void,
): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  const end = (): void => {
    watch?.end()
    release()
  }
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (value !== undefined) {
          watch?.take(Buffer.from(value).toString('latin1'))
          controller.enqueue(value)
        }
        if (!done) return
        end()
        controller.close()
      } catch (error) {
        end()
        controller.error(error)
      }
    },
    cancel: (reason) => {
      end()
      return reader.cancel(reason)
    },
  })
}

/** A response with another body. */
export function withBody(response: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText } = response
  // A copy: servers for Node that replace `Response` keep the headers that they are given, and those of `fetch` are read-only.
  const headers = new Headers(response.headers)
  const whole = new Response(body, { status, statusText, headers })
  Object.defineProperty(whole, 'url', { value: response.url })
  Object.defineProperty(whole, 'redirected', { value: response.redirected })
  return whole
}
