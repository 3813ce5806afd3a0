import { readFrames } from './frames.js'
import type { RunEvent } from '#core/state/events.js'
import type { ChatEvent } from '#session/thread/chat-cursor.js'

export interface FollowUrlOptions {
  /** The cursor of the last event that the reader has. Default: all events. */
  readonly after?: string | undefined
  readonly fetch?: typeof fetch | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal | undefined
}

/** An event of a run or of a conversation, with the reader's place after it. */
export type FollowedEvent = ChatEvent

/** The server refused the request: asking again does not help. */
export class FollowError extends Error {
  override readonly name = 'FollowError'
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/**
 * The events of a run (`…/runs/{id}/events`) or of a conversation (`…/threads/{id}/events`), for `reduceChat`. A lost connection
 * is opened again with the cursor, at once and then after 1, 2, 4 … 30 s, and at once when the page becomes visible or comes online.
 * Ends when the run has paused or ended. Throws a `FollowError` for a 4xx answer.
 *
 * @example
 * for await (const event of followRun(`/threads/${threadId}/events`)) render((snapshot = reduceChat(snapshot, event)))
 */
export async function* followRun(
  url: string,
  { after, fetch: send = fetch, headers, signal }: FollowUrlOptions = {},
): AsyncGenerator<FollowedEvent, void, undefined> {
  let cursor = after ?? null
  let attempt = 0
  while (signal?.aborted !== true) {
    try {
      const response = await send(url, { headers: { ...headers, ...placeHeader(cursor) }, ...(signal && { signal }) })
      if (response.status === 204) return
      if (response.status >= 400 && response.status < 500) throw await followError(response)
      if (response.ok && response.body !== null)
        for await (const { event, data, id } of readFrames(response.body)) {
          if (event === 'end') return
          const value = JSON.parse(data) as RunEvent & FollowedEvent
          // What comes again each time is no progress.
          if (id !== null) [cursor, attempt] = [id, 0]
          // The reply that is arriving is told from its beginning.
          yield event === 'open_turn' ? withdrawnEvent(value) : { ...value, cursor: cursor ?? '0' }
        }
    } catch (error) {
      if (error instanceof FollowError) throw error
    }
    await waitFor(backoffMs(attempt), signal)
    attempt += 1
  }
}

function placeHeader(cursor: string | null): Record<string, string> {
  return cursor === null ? {} : { 'last-event-id': cursor }
}

/** The event by which readers drop what they have of the open reply: with what readers look at. */
function withdrawnEvent({ runId, seq }: { readonly runId: string; readonly seq: number }): FollowedEvent {
  return {
    kind: 'deltas_withdrawn',
    runId,
    seq,
    durable: false,
    parentRunId: null,
    cursor: '',
  } as unknown as FollowedEvent
}

/** The error for a response that is none. */
export async function followError(response: Response): Promise<FollowError> {
  const refused = (await response.json().catch(() => null)) as { readonly message?: unknown } | null
  const message = refused?.message
  return new FollowError(
    response.status,
    typeof message === 'string' ? message : `The server answered ${response.status}.`,
  )
}

/** Waits before another attempt: at once, then 1, 2, 4 … 30 s, each up to a quarter shorter. */
export function backoffMs(attempt: number, random: () => number = Math.random): number {
  if (attempt === 0) return 0
  const ms = Math.min(30_000, 1_000 * 2 ** (attempt - 1))
  return Math.round(ms * (1 - random() / 4))
}

/** Resolves after `ms`, or when the page becomes visible or comes online, or at the signal. */
export async function waitFor(ms: number, signal?: AbortSignal): Promise<void> {
  if (ms === 0 || signal?.aborted === true) return
  const page = globalThis as Partial<EventTarget> & { readonly document?: EventTarget & { visibilityState?: string } }
  const over = new AbortController()
  await new Promise<void>((resolve) => {
    const endWait = (): void => resolve()
    const isVisible = (): void => {
      if (page.document?.visibilityState === 'visible') resolve()
    }
    const timer = setTimeout(endWait, ms)
    over.signal.onabort = () => clearTimeout(timer)
    page.document?.addEventListener('visibilitychange', isVisible, over)
    page.addEventListener?.('online', endWait, over)
    signal?.addEventListener('abort', endWait, over)
  })
  over.abort()
}
