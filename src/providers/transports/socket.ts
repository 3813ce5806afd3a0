import type { WebSocket } from 'undici'
import type { HarnessError } from '#contracts/errors.js'
import { joinedBytes, textOfBytes } from '#util/bytes.js'
import { isObject, parseJson } from '#util/json.js'
import { KEPT_FOR_MS } from '../http/connections.js'
import { withCallers } from '../http/endpoint.js'
import type { Endpoint } from '../http/endpoint.js'
import { connectionError, errorFromBody, markUnsent, notJson, providerError } from '../http/provider-errors.js'
import { flatHeaders } from '../http/exchange.js'
import { RequestGuard } from '../http/request-guard.js'
import type { TimeLimits } from '../http/options.js'
import type { Dispatcher } from '../http/proxy.js'
import { StreamedAnswer } from '../http/wire-format.js'
import type { Transport, TransportRequest, WireChunk } from '../http/wire-format.js'
import { stringIn } from '../wire/wire-fields.js'

/** The server closes a connection after an hour: no request begins on one that is older than this, in ms. */
const LONGEST_AGE_MS = 55 * 60_000

/** Events after which nothing more of a response comes. */
const LAST = /^(?:response\.(?:completed|incomplete|failed|cancelled)|error)$/

/** What a line is made of. */
export interface LineSettings {
  /** For other requests, and for all of them if the server takes no WebSockets. */
  readonly http: Transport
  readonly endpoint: () => Endpoint
  readonly limits: TimeLimits
  /** Sends the handshake, such as through a proxy. Default: undici's own. */
  readonly dispatcher: (url: URL) => Promise<Dispatcher | undefined>
}

/**
 * Responses over one WebSocket, opened by the first request. While it is open, the server has the latest response in its memory.
 * If it cannot be opened, requests are sent over HTTP.
 */
export class SocketTransport implements Transport {
  readonly bodies = 'bytes'
  readonly #settings: LineSettings
  #line: Line | null = null
  /** The server has never taken one. */
  #isRefused = false
  #unused: NodeJS.Timeout | undefined

  constructor(settings: LineSettings) {
    this.#settings = settings
  }

  holds(responseId: string): boolean {
    return this.#line?.isOpen === true && this.#line.held === responseId
  }

  async send(request: TransportRequest): Promise<unknown> {
    const guard = new RequestGuard(request, this.#settings.limits)
    try {
      const line = await this.#open(request, guard)
      if (line === null) return await this.#settings.http.send(request)
      const chunks: WireChunk[] = []
      for await (const each of line.ask(request, guard)) chunks.push(...each)
      return new StreamedAnswer(chunks)
    } finally {
      guard.release()
    }
  }

  async *stream(request: TransportRequest): AsyncGenerator<readonly WireChunk[], void, void> {
    const guard = new RequestGuard(request, this.#settings.limits)
    try {
      const line = await this.#open(request, guard)
      if (line === null) yield* this.#settings.http.stream(request)
      else yield* line.ask(request, guard)
    } finally {
      guard.release()
    }
  }

  async connect(to: Pick<TransportRequest, 'path' | 'headers'>): Promise<void> {
    const guard = new RequestGuard({ signal: new AbortController().signal }, this.#settings.limits)
    try {
      if ((await this.#open(to, guard)) === null) await this.#settings.http.connect?.(to)
      // An open connection keeps the process alive.
      this.#unused = setTimeout(() => void this.close(), KEPT_FOR_MS)
    } finally {
      guard.release()
    }
  }

  close(): Promise<void> {
    clearTimeout(this.#unused)
    this.#line?.close()
    return Promise.resolve()
  }

  /** The open line, or a new one; null if the server has none to give. Its answer over HTTP says why. */
  async #open(
    { path, headers }: Pick<TransportRequest, 'path' | 'headers'>,
    guard: RequestGuard,
  ): Promise<Line | null> {
    guard.throwIfFailed()
    clearTimeout(this.#unused)
    if (this.#isRefused) return null
    if (this.#line?.isOpen === true) return this.#line
    this.#line?.close()
    const endpoint = this.#settings.endpoint()
    const url = new URL(endpoint.urlOf(path))
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    const { WebSocket: Socket } = await import('undici')
    const dispatcher = await this.#settings.dispatcher(url)
    const socket = new Socket(url, {
      headers: { 'user-agent': 'thinharness', ...withCallers(headers, endpoint.headers) },
      ...(dispatcher !== undefined && { dispatcher: dispatcher as never }),
    })
    const line = new Line(socket, url.host, endpoint.isLocal)
    guard.onStop(() => line.close())
    await guard.wait('connectMs', () => line.opened)
    guard.finish()
    if (!line.isOpen) {
      this.#isRefused = this.#line === null
      return null
    }
    this.#line = line
    return line
  }
}

/** One open WebSocket, for one request at a time. */
class Line {
  /** The response that the server has in its memory. */
  held: string | null = null
  /** Settles when it is open, or could not be opened. */
  readonly opened: Promise<void>
  readonly #socket: WebSocket
  readonly #host: string
  readonly #isFree: boolean
  readonly #begun = performance.now()
  #received: WireChunk[] = []
  #failure: HarnessError | null = null
  #wake: () => void = () => undefined

  constructor(socket: WebSocket, host: string, isFree: boolean) {
    this.#socket = socket
    this.#host = host
    this.#isFree = isFree
    this.opened = new Promise((resolve) => {
      socket.addEventListener('open', () => resolve())
      socket.addEventListener('close', ({ code }) => {
        this.#failure ??= connectionError(new Error(`the server closed it (${code})`), host, this.held === null)
        resolve()
        this.#wake()
      })
    })
    // Every failure closes the connection too.
    socket.addEventListener('error', () => undefined)
    socket.addEventListener('message', ({ data }) => {
      this.#receive(data)
      this.#wake()
    })
  }

  get isOpen(): boolean {
    return this.#failure === null && this.#socket.readyState === 1 && performance.now() - this.#begun < LONGEST_AGE_MS
  }

  close(): void {
    this.#failure = this.#ended
    this.#socket.close()
  }

  get #ended(): HarnessError {
    return this.#failure ?? connectionError(new Error('it was closed'), this.#host, true)
  }

  /** The events of one response. The guard closes the connection unless it has ended: its rest would be taken for the next one's. */
  async *ask({ body }: TransportRequest, guard: RequestGuard): AsyncGenerator<readonly WireChunk[], void, void> {
    if (this.#isFree) guard.markAsFree()
    guard.onStop(() => this.close())
    const wasUsed = this.held !== null
    this.held = null
    this.#received = []
    this.#socket.send(messageOf(body as readonly Uint8Array[]))
    for (let [count, hasEnded] = [0, false]; !hasEnded; count++) {
      await guard.wait(count === 0 ? 'firstByteMs' : 'idleMs', () => this.#more())
      const chunks = this.#received
      this.#received = []
      if (chunks.length === 0) throw count > 0 || !wasUsed ? this.#ended : staleLine(this.#ended)
      const last = chunks.find(({ event }) => LAST.test(event ?? ''))
      hasEnded = last !== undefined
      if (hasEnded) guard.finish()
      if (last?.event === 'error') throw this.#refusal(last.data)
      this.held = heldBy(last)
      yield chunks
    }
  }

  #more(): Promise<void> {
    if (this.#received.length > 0 || this.#failure !== null) return Promise.resolve()
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #receive(data: unknown): void {
    const parsed = parseJson(String(data))
    if (!parsed.ok) this.#failure ??= notJson(new Error('it sent something else in an event'))
    else if (isObject(parsed.value)) this.#received.push({ event: stringIn(parsed.value['type']), data: parsed.value })
  }

  /** The error of an event, which has the status and the headers that an answer over HTTP would have. */
  #refusal(data: unknown): HarnessError {
    const { status, headers } = isObject(data) ? data : {}
    const given = isObject(headers) ? flatHeaders(headers) : {}
    const error = errorFromBody(typeof status === 'number' ? status : 200, given, data)
    if (!/websocket_\w+_limit/.test(error.message)) return error
    this.close()
    return staleLine(error)
  }
}

/** The request as a message: without `stream`, since every response is a stream. */
function messageOf(body: readonly Uint8Array[]): string {
  const text = textOfBytes(joinedBytes(body))
  return `{"type":"response.create",${text.slice(1).replace(/,"stream":true\}$/, '}')}`
}

function heldBy(chunk: WireChunk | undefined): string | null {
  if (!/completed|incomplete/.test(chunk?.event ?? '')) return null
  const response = isObject(chunk?.data) ? chunk.data['response'] : undefined
  return isObject(response) ? stringIn(response['id']) || null : null
}

/** The connection had ended before the request: it is sent again at once, over another one. */
function staleLine(cause: Error): HarnessError {
  const message = `The connection that the request was sent on had ended: ${cause.message}`
  return markUnsent(providerError(message, { cause, retryable: true, retryAfterMs: 0, failure: 'connection' }))
}
