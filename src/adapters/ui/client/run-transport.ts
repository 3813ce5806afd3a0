import type { UiChunk } from '../ai-sdk/chunk.js'
import { backoffMs, waitFor } from './backoff.js'
import { readFrames } from './frames.js'
import { FollowError, followError } from './follow-run.js'
import { ToldStream } from './told-stream.js'
import type { StreamChunk } from './told-stream.js'

export interface RunTransportOptions {
  /** The address of the handler `aiSdk`. Default `/api/chat`. */
  readonly api?: string | undefined
  readonly fetch?: typeof fetch | undefined
  readonly headers?: Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>) | undefined
  /** Members of the body of each request. */
  readonly body?: object | undefined
  readonly credentials?: 'omit' | 'same-origin' | 'include' | undefined
  /** The version of the AI SDK on the page. Default 7. */
  readonly dialect?: 5 | 6 | 7 | undefined
  /** The address that stops the run of a chat. Default: `threads/{chatId}/stop` next to `api`. */
  readonly stopUrl?: ((chatId: string) => string) | undefined
}

interface RequestOptions {
  readonly chatId: string
  readonly abortSignal?: AbortSignal | undefined
  readonly headers?: Readonly<Record<string, string>> | Headers | undefined
  readonly body?: object | undefined
  readonly metadata?: unknown
}

interface SendOptions extends RequestOptions {
  readonly trigger: 'submit-message' | 'regenerate-message'
  readonly messageId: string | undefined
  readonly messages: readonly { readonly id: string; readonly role: string; readonly parts: readonly unknown[] }[]
}

/** A `ChatTransport` for `useChat` of the AI SDK 5, 6 and 7. */
export interface RunTransport<Chunk> {
  /** Streams that are resumed tell the message from its beginning. */
  readonly resumeStreamIsReplay: true
  readonly sendMessages: (options: SendOptions) => Promise<ReadableStream<Chunk>>
  readonly reconnectToStream: (options: RequestOptions) => Promise<ReadableStream<Chunk> | null>
  /** Stops the run of a chat: `stop` of `useChat` ends only the request. */
  readonly stop: (chatId: string) => Promise<void>
}

/**
 * The transport of `useChat` for runs: a lost connection is opened again in the background, and the hook reads one continuous
 * stream that ends with its run. Throws a `FollowError` for a request that the server refuses.
 *
 * @example
 * const chat = useChat({ id: threadId, transport: runTransport({ api: '/api/chat' }), sendAutomaticallyWhen: whenAnswered })
 */
export function runTransport<Chunk = UiChunk>(options: RunTransportOptions = {}): RunTransport<Chunk> {
  const {
    api = '/api/chat',
    stopUrl = (chatId: string): string => siblingUrl(api, `threads/${encodeURIComponent(chatId)}/stop`),
  } = options
  const link = new Link(options)
  return {
    resumeStreamIsReplay: true,
    sendMessages: async (request) => {
      // The server has the rest of the conversation.
      const { messages, trigger, messageId, chatId: id } = request
      const body = { ...options.body, ...request.body, id, messages: messages.slice(-1), trigger, messageId }
      const postRequest = (): Promise<Response> => link.send(api, request, { method: 'POST', body: JSON.stringify(body) })
      return link.continued(await postRequest(), { ...request, again: postRequest })
    },
    reconnectToStream: async (request) => {
      const response = await link.send(streamUrl(api, request.chatId), request)
      return response.status === 204 ? null : link.continued(response, request)
    },
    stop: async (chatId) => {
      await link.send(stopUrl(chatId), { chatId }, { method: 'POST' })
    },
  }
}

interface Attempt extends RequestOptions {
  /** Repeats the request, as long as nothing of the message has come. */
  readonly again?: () => Promise<Response>
}

/** The requests of a transport. */
class Link {
  readonly #options: RunTransportOptions

  constructor(options: RunTransportOptions) {
    this.#options = options
  }

  /** Throws a `FollowError` for a request that is refused. */
  async send(url: string, request: RequestOptions, init: RequestInit = {}): Promise<Response> {
    const { fetch: send = fetch, headers: common = {}, credentials, dialect } = this.#options
    const headers = new Headers(typeof common === 'function' ? common() : common)
    new Headers(request.headers).forEach((value, name) => headers.set(name, value))
    if (init.body !== undefined) headers.set('content-type', 'application/json')
    const response = await send(dialect === undefined ? url : withQuery(url, `dialect=${dialect}`), {
      ...init,
      headers,
      ...(credentials !== undefined && { credentials }),
      ...(request.abortSignal !== undefined && { signal: request.abortSignal }),
    })
    if (!response.ok) throw await followError(response)
    return response
  }

  /** The stream of a response, continued by others when it breaks off. */
  continued<Chunk>(response: Response, attempt: Attempt): ReadableStream<Chunk> {
    const chunks = this.#chunks(response, attempt)
    return new ReadableStream<Chunk>({
      async pull(controller) {
        const next = await chunks.next()
        if (next.done === true) controller.close()
        // The chunks are those of the version on the page.
        else controller.enqueue(next.value as unknown as Chunk)
      },
      async cancel() {
        await chunks.return()
      },
    })
  }

  async *#chunks(first: Response, attempt: Attempt): AsyncGenerator<StreamChunk, void, undefined> {
    const { dialect = 7 } = this.#options
    const { abortSignal } = attempt
    const told = new ToldStream({ hasReset: dialect === 7 })
    let response: Response | null = first
    let tries = 0
    while (abortSignal?.aborted !== true) {
      if (response !== null) {
        told.begin()
        for await (const chunk of readChunks(response.body)) {
          tries = 0
          if (chunk === null) return
          const isEnd = chunk.type === 'finish' || chunk.type === 'error' || chunk.type === 'abort'
          yield* isEnd ? told.end(chunk) : told.next(chunk)
        }
      }
      await waitFor(backoffMs(tries), abortSignal)
      tries += 1
      response = await this.#again(attempt, told.messageId)
    }
  }

  /** The stream once more; null if the server cannot be reached. */
  async #again(attempt: Attempt, messageId: string | null): Promise<Response | null> {
    const { api = '/api/chat' } = this.#options
    const { chatId, again, abortSignal } = attempt
    if (abortSignal?.aborted === true) return null
    try {
      if (messageId === null && again !== undefined) return await again()
      const response = await this.send(withQuery(streamUrl(api, chatId), 'replay=1'), attempt)
      if (response.status === 204) throw new FollowError(404, 'The run that was read is gone.')
      return response
    } catch (error) {
      if (error instanceof FollowError && error.status < 500) throw error
      return null
    }
  }
}

/** The chunks of a body, and null for the end of the stream; a body that breaks off ends without it. */
async function* readChunks(body: ReadableStream<Uint8Array> | null): AsyncGenerator<StreamChunk | null, void, undefined> {
  if (body === null) return
  try {
    for await (const { data } of readFrames(body)) yield data === '[DONE]' ? null : (JSON.parse(data) as StreamChunk)
  } catch {
    // The connection is lost.
  }
}

function streamUrl(api: string, chatId: string): string {
  const [path = '', query] = api.split('?')
  const url = `${path.replace(/\/$/, '')}/${encodeURIComponent(chatId)}/stream`
  return query === undefined ? url : `${url}?${query}`
}

/** An address next to another. */
function siblingUrl(url: string, path: string): string {
  return `${(url.split('?')[0] ?? '').replace(/[^/]*\/?$/, '')}${path}`
}

function withQuery(url: string, query: string): string {
  return `${url}${url.includes('?') ? '&' : '?'}${query}`
}
