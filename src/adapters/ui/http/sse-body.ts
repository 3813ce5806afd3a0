/** Headers of every stream of server-sent events. */
export const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
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
  const pulse = new Pulse()
  let isClosed = false
  const stopPulse = (): void => {
    pulse.stop()
    // Node aborts the signal of a request only for as long as something refers to the request: this function does.
    request?.signal.removeEventListener('abort', stopPulse)
    onCancel?.()
    frames.return?.().catch(() => undefined)
  }
  const endStream = (): void => {
    isClosed = true
    stopPulse()
  }
  request?.signal.addEventListener('abort', stopPulse)
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        pulse.every(heartbeatMs, () => {
          // A reader that does not read gets none.
          if (Number(controller.desiredSize) > 0) controller.enqueue(encoder.encode(': alive\n\n'))
        })
        if (maxStreamMs !== undefined)
          pulse.after(maxStreamMs, () => {
            endStream()
            controller.close()
          })
        if (preamble !== '') controller.enqueue(encoder.encode(preamble))
      },
      async pull(controller) {
        const next = await frames.next().catch((error: unknown) => {
          pulse.stop()
          throw error
        })
        if (isClosed) return
        pulse.reset()
        if (next.done !== true) {
          controller.enqueue(encoder.encode(next.value))
          return
        }
        pulse.stop()
        controller.close()
      },
      cancel: endStream,
    },
    { highWaterMark: 1 },
  )
}

/** The timers of one stream. */
class Pulse {
  #lastAt = performance.now()
  #beating: ReturnType<typeof setTimeout> | undefined
  #ending: ReturnType<typeof setTimeout> | undefined

  /** Calls `beat` after so long without a `reset`, again and again. */
  every(ms: number, beat: () => void): void {
    const checkIdle = (): void => {
      const idle = performance.now() - this.#lastAt
      if (idle >= ms) beat()
      this.#beating = setTimeout(checkIdle, idle >= ms ? ms : ms - idle)
    }
    this.#beating = setTimeout(checkIdle, ms)
  }

  after(ms: number, end: () => void): void {
    this.#ending = setTimeout(end, ms)
  }

  reset(): void {
    this.#lastAt = performance.now()
  }

  stop(): void {
    clearTimeout(this.#beating)
    clearTimeout(this.#ending)
  }
}
