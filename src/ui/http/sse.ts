/** Headers of every stream of server-sent events. */
export const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const

export interface SseOptions {
  /** What the stream begins with. Default: nothing. */
  readonly preamble?: string | undefined
  /** A comment is sent after so long without an item, in ms. Default 15,000. */
  readonly heartbeatMs?: number | undefined
  /** The body is closed after so long, in ms: clients come back with their cursor. Default: never. */
  readonly maxStreamMs?: number | undefined
  /** The request that the body answers: its signal ends the body. */
  readonly request?: Request | undefined
  /** The reader has gone away. */
  readonly onCancel?: (() => void) | undefined
}

const HEARTBEAT_MS = 15_000

/**
 * A body of server-sent events. The frames are read as the reader takes them; a reader that is gone ends them. If reading them
 * fails, the body breaks off: it does not end cleanly.
 */
export function sseBody(
  frames: AsyncIterator<string>,
  { preamble = '', heartbeatMs = HEARTBEAT_MS, maxStreamMs, onCancel, request }: SseOptions = {},
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const until = maxStreamMs === undefined ? Infinity : performance.now() + maxStreamMs
  let reading: Promise<IteratorResult<string>> | null = null
  const stop = (): void => {
    // Node aborts the signal of a request only for as long as something refers to the request: this function does.
    request?.signal.removeEventListener('abort', stop)
    onCancel?.()
    frames.return?.().catch(() => undefined)
  }
  request?.signal.addEventListener('abort', stop)
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        if (preamble !== '') controller.enqueue(encoder.encode(preamble))
      },
      async pull(controller) {
        reading ??= frames.next()
        const next = await within(reading, Math.min(heartbeatMs, until - performance.now()))
        if (next === null && performance.now() < until) {
          controller.enqueue(encoder.encode(': alive\n\n'))
          return
        }
        if (next === null) {
          stop()
          controller.close()
          return
        }
        reading = null
        if (next.done === true) controller.close()
        else controller.enqueue(encoder.encode(next.value))
      },
      cancel: stop,
    },
    { highWaterMark: 1 },
  )
}

/** Null if the promise has not settled after `ms`. */
async function within<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), Math.max(0, ms))
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
