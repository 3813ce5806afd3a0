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
  let lastAt = 0
  let heartbeat: ReturnType<typeof setTimeout> | undefined
  let ending: ReturnType<typeof setTimeout> | undefined
  let isClosed = false
  const release = (): void => {
    clearTimeout(heartbeat)
    clearTimeout(ending)
  }
  const stop = (): void => {
    release()
    // Node aborts the signal of a request only for as long as something refers to the request: this function does.
    request?.signal.removeEventListener('abort', stop)
    onCancel?.()
    frames.return?.().catch(() => undefined)
  }
  request?.signal.addEventListener('abort', stop)
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const beat = (): void => {
          const idle = performance.now() - lastAt
          const isIdle = idle >= heartbeatMs
          // A reader that does not read gets none.
          if (isIdle && Number(controller.desiredSize) > 0) controller.enqueue(encoder.encode(': alive\n\n'))
          heartbeat = setTimeout(beat, isIdle ? heartbeatMs : heartbeatMs - idle)
        }
        lastAt = performance.now()
        heartbeat = setTimeout(beat, heartbeatMs)
        if (maxStreamMs !== undefined)
          ending = setTimeout(() => {
            stop()
            isClosed = true
            controller.close()
          }, maxStreamMs)
        if (preamble !== '') controller.enqueue(encoder.encode(preamble))
      },
      async pull(controller) {
        const next = await frames.next().catch((error: unknown) => {
          release()
          throw error
        })
        if (isClosed) return
        lastAt = performance.now()
        if (next.done !== true) return controller.enqueue(encoder.encode(next.value))
        release()
        controller.close()
      },
      cancel() {
        isClosed = true
        stop()
      },
    },
    { highWaterMark: 1 },
  )
}
