import { onTestFinished } from 'vitest'
import type { Handlers } from 'thinharness/ui'
import type { ReadableStore } from 'thinharness/ui/store'

export const API = 'http://localhost/api'

/** The requests of a page to handlers, as a network that can be cut. */
export class Page {
  readonly #handlers: Pick<Handlers, 'events' | 'requests'>
  readonly #open = new Set<ReadableStreamDefaultController<Uint8Array>>()
  /** `GET` and `POST` with the path, in order. */
  readonly asked: string[] = []
  /** Answered in place of the handlers, once each. */
  readonly refusals: (Response | Error)[] = []

  constructor(handlers: Pick<Handlers, 'events' | 'requests'>) {
    this.#handlers = handlers
  }

  /** Streams of events that are open. */
  get connections(): number {
    return this.#open.size
  }

  get followed(): readonly string[] {
    return this.asked.filter((line) => line.includes('/events'))
  }

  /** Breaks off what is open. */
  cut(): void {
    for (const controller of this.#open) controller.error(new TypeError('network error'))
    this.#open.clear()
  }

  readonly fetch = (async (input: string, init: RequestInit = {}): Promise<Response> => {
    const request = new Request(input, init)
    const { pathname } = new URL(request.url)
    this.asked.push(`${request.method} ${pathname.slice('/api'.length)}`)
    const refusal = this.refusals.shift()
    if (refusal instanceof Error) throw refusal
    if (refusal !== undefined) return refusal
    if (!pathname.endsWith('/events')) return this.#handlers.requests(request)
    const response = await this.#handlers.events(request)
    if (
      response.body === null ||
      !response.ok ||
      !(response.headers.get('content-type') ?? '').includes('event-stream')
    )
      return response
    return new Response(this.#watched(response.body, request.signal), response)
  }) as typeof fetch

  #watched(body: ReadableStream<Uint8Array>, signal: AbortSignal): ReadableStream<Uint8Array> {
    const reader = body.getReader()
    return new ReadableStream({
      start: (controller) => {
        this.#open.add(controller)
        const forget = (): void => {
          this.#open.delete(controller)
          reader.cancel().catch(() => undefined)
        }
        signal.addEventListener('abort', () => {
          if (!this.#open.has(controller)) return
          forget()
          controller.error(new DOMException('aborted', 'AbortError'))
        })
        const pump = async (): Promise<void> => {
          for (;;) {
            const { value, done } = await reader.read()
            if (!this.#open.has(controller)) return
            if (done) break
            controller.enqueue(value)
          }
          this.#open.delete(controller)
          controller.close()
        }
        pump().catch(() => undefined)
      },
    })
  }
}

/** Subscribes for the rest of the test, and waits for states. */
export function watch<State>(store: ReadableStore<State>): {
  readonly states: readonly State[]
  readonly until: (fits: (state: State) => boolean) => Promise<State>
  readonly end: () => void
} {
  const states: State[] = [store.getSnapshot()]
  let waiting: (() => void)[] = []
  const end = store.subscribe(() => {
    states.push(store.getSnapshot())
    const all = waiting
    waiting = []
    for (const check of all) check()
  })
  onTestFinished(end)
  const until = (fits: (state: State) => boolean): Promise<State> =>
    new Promise((resolve) => {
      const check = (): void => {
        const state = store.getSnapshot()
        if (fits(state)) resolve(state)
        else waiting.push(check)
      }
      check()
    })
  return { states, until, end }
}
