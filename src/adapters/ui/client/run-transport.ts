import { backoffMs, waitFor, FollowError, followError } from './follow-run.js'
import { readFrames } from './frames.js'

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
 * stream that ends with its run. Throws a `FollowError` for a request that the server refuses. `Chunk` is for who reads the streams
 * oneself; by default they fit every version of `useChat`.
 *
 * @example
 * const chat = useChat({ id: threadId, transport: runTransport({ api: '/api/chat' }), sendAutomaticallyWhen: whenAnswered })
 */
export function runTransport<Chunk = never>(options: RunTransportOptions = {}): RunTransport<Chunk> {
  checkNames(options)
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
      const postRequest = (): Promise<Response> =>
        link.send(api, request, { method: 'POST', body: JSON.stringify(body) })
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

const NAMES = ['api', 'fetch', 'headers', 'body', 'credentials', 'dialect', 'stopUrl']

function checkNames(options: object): void {
  for (const name of Object.keys(options)) {
    if (NAMES.includes(name)) continue
    const letters = (text: string): string => Array.from(text.toLowerCase()).sort().join('')
    const isNear = (each: string): boolean =>
      letters(each) === letters(name) || each.startsWith(name.slice(0, 3)) || each.endsWith(name.slice(-3))
    const near = NAMES.find(isNear)
    const hint = near === undefined ? '' : ` Did you mean \`${near}\`?`
    throw new TypeError(`Unknown option of \`runTransport\`: \`${name}\`.${hint}`)
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
async function* readChunks(
  body: ReadableStream<Uint8Array> | null,
): AsyncGenerator<StreamChunk | null, void, undefined> {
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

/** A chunk of a UI message stream, as far as a transport looks at it. */
export interface StreamChunk {
  readonly type: string
  readonly id?: string
  readonly messageId?: string
  readonly toolCallId?: string
  readonly delta?: string
  readonly inputTextDelta?: string
  readonly transient?: boolean
  readonly preliminary?: boolean
}

/** What one step of a message was told. */
class Step {
  /** How often each chunk was told, by its JSON. */
  readonly counts = new Map<string, number>()
  /** The text of each part so far, by its name; calls have their input. */
  readonly texts = new Map<string, string>()
  /** Texts, and inputs of calls, that have begun and not ended. */
  readonly open = new Set<string>()
  readonly parts = new Set<string>()
  /** How many chunks of each call were told, without its inputs as they arrive. */
  readonly calls = new Map<string, number>()

  add(chunk: StreamChunk): void {
    const part = partKey(chunk)
    // The next of these replaces it.
    if (chunk.preliminary === true) return
    const text = chunkText(chunk)
    if (part !== null) {
      this.parts.add(part)
      if (text !== null) this.texts.set(part, (this.texts.get(part) ?? '') + text)
      else if (chunk.type.endsWith('-start')) this.open.add(part)
      else this.open.delete(part)
    }
    if (text !== null) return
    this.counts.set(chunkKey(chunk), this.count(chunk) + 1)
    if (part !== null) this.calls.set(part, (this.calls.get(part) ?? 0) + 1)
  }

  count(chunk: StreamChunk): number {
    return this.counts.get(chunkKey(chunk)) ?? 0
  }
}

/**
 * One continuous stream out of several that each tell a message from its beginning: what was told is left out, and texts are
 * continued where they broke off. A reply that was taken back meanwhile is taken back here too.
 */
export class ToldStream {
  readonly #hasReset: boolean
  /** Steps as they were told; the first has what comes before the first step. */
  readonly #told: Step[] = [new Step()]
  /** The steps of the present stream, and the chunks of its present step. */
  #again: Step[] = [new Step()]
  #chunks: StreamChunk[] = []
  messageId: string | null = null

  /** `hasReset`: the client of the page can take a step back. */
  constructor({ hasReset }: { readonly hasReset: boolean }) {
    this.#hasReset = hasReset
  }

  /** Another stream of the message begins. */
  begin(): void {
    this.#again = [new Step()]
    this.#chunks = []
  }

  /** The chunks that are to be handed on for the next one of the present stream. */
  next(chunk: StreamChunk): readonly StreamChunk[] {
    // Clients forget the texts of a step at its end.
    const isEnd = chunk.type === 'start-step' || (chunk.type === 'finish-step' && !this.#hasReset)
    const lost = isEnd ? this.#settleLost() : []
    if (chunk.type === 'start') this.messageId ??= chunk.messageId ?? null
    if (chunk.type === 'start-step') {
      this.#again.push(new Step())
      this.#chunks = []
    }
    const step = this.#again.at(-1)
    if (chunk.type === 'reset-step' && step !== undefined) {
      this.#again[this.#again.length - 1] = new Step()
      this.#chunks = []
    }
    this.#chunks.push(chunk)
    this.#again.at(-1)?.add(chunk)
    return [...lost, ...this.#fresh(chunk)]
  }

  /** The chunks that are missing before the stream ends with `chunk`. */
  end(chunk: StreamChunk): readonly StreamChunk[] {
    return [...this.#settleLost(), chunk]
  }

  #fresh(chunk: StreamChunk): readonly StreamChunk[] {
    const index = this.#again.length - 1
    const told = this.#told[index]
    const again = this.#again[index]
    if (told === undefined || again === undefined) return this.#tell(chunk)
    if (chunk.type === 'start-step') return []
    // A step before the last has been told as a whole: only data can be new.
    if (index < this.#told.length - 1 && !chunk.type.startsWith('data-')) return []
    if (chunk.type === 'reset-step') return told.parts.size === 0 ? [] : this.#tell(chunk)
    const part = partKey(chunk)
    // A new part stands after all that were told: they must have come before it.
    if (part !== null && !told.parts.has(part) && hasOthers(told, again)) return this.#retell()
    if (part !== null && chunk.preliminary === true)
      return told.calls.get(part) === again.calls.get(part) ? this.#tell(chunk) : []
    const text = chunkText(chunk)
    if (part !== null && text !== null) {
      const [before, now] = [told.texts.get(part) ?? '', again.texts.get(part) ?? '']
      if (before.startsWith(now)) return []
      // What has ended cannot be continued: it was a reply that was taken back.
      const continues = now.startsWith(before) && told.open.has(part)
      return continues ? this.#tell(withText(chunk, now.slice(before.length))) : this.#retell()
    }
    if (chunk.type.endsWith('-end') && part !== null && told.texts.get(part) !== again.texts.get(part))
      return this.#retell()
    return again.count(chunk) <= told.count(chunk) ? [] : this.#tell(chunk)
  }

  #tell(chunk: StreamChunk): readonly StreamChunk[] {
    if (chunk.type === 'start-step') this.#told.push(new Step())
    else if (chunk.type === 'reset-step') this.#told[this.#told.length - 1] = new Step()
    this.#told.at(-1)?.add(chunk)
    return [chunk]
  }

  /** Something that was told of the step may not be in it any more: it is taken back, or closed and marked as such. */
  #settleLost(): readonly StreamChunk[] {
    const index = this.#again.length - 1
    const [told, again] = [this.#told[index], this.#again[index]]
    if (index === 0 || told === undefined || again === undefined || index < this.#told.length - 1) return []
    if (!hasOthers(told, again)) return []
    if (this.#hasReset) return this.#retell()
    const lost = [...told.parts].filter((part) => !again.parts.has(part) && isTextChunk(part))
    for (const part of lost) told.parts.delete(part)
    return lost.length === 0 ? [] : [...endChunks(lost.filter((part) => told.open.delete(part))), supersededChunk(lost)]
  }

  /** The present step is told again from its beginning. */
  #retell(): readonly StreamChunk[] {
    const told = this.#told.at(-1) ?? new Step()
    const ended = endChunks([...told.open].filter(isTextChunk))
    const parts = [...told.parts].filter(isTextChunk)
    this.#told[this.#told.length - 1] = new Step()
    const chunks = this.#chunks.filter(({ type }) => type !== 'start-step' && type !== 'reset-step')
    return [
      ...ended,
      this.#hasReset ? { type: 'reset-step' } : supersededChunk(parts),
      ...chunks.flatMap((chunk) => this.#tell(chunk)),
    ]
  }
}

/** The ends of texts. */
function endChunks(parts: readonly string[]): readonly StreamChunk[] {
  return parts.map((part) => {
    const [kind = '', id = ''] = part.split(' ')
    return { type: `${kind}-end`, id }
  })
}

function supersededChunk(parts: readonly string[]): StreamChunk & { readonly data: unknown } {
  return { type: 'data-superseded', data: { parts: parts.map((part) => part.split(' ')[1]) } }
}

/** True if something was told of a step that has not come again. */
function hasOthers(told: Step, again: Step): boolean {
  return [...told.parts].some((part) => !again.parts.has(part))
}

/** The name of the text or call that a chunk is of. */
function partKey({ type, id, toolCallId }: StreamChunk): string | null {
  if (toolCallId !== undefined) return `call ${toolCallId}`
  const [, kind] = /^(text|reasoning)-/.exec(type) ?? []
  return kind === undefined ? null : `${kind} ${id ?? ''}`
}

function isTextChunk(part: string): boolean {
  return !part.startsWith('call ')
}

function chunkText({ delta, inputTextDelta }: StreamChunk): string | null {
  return delta ?? inputTextDelta ?? null
}

function withText(chunk: StreamChunk, text: string): StreamChunk {
  return chunk.delta === undefined ? { ...chunk, inputTextDelta: text } : { ...chunk, delta: text }
}

function chunkKey(chunk: StreamChunk): string {
  return JSON.stringify(chunk)
}
