import type { ScriptMessage } from '../script-request.js'
import { readRequestBody, closeServer, openServer, serverOrigin } from '../http-server.js'
import type { ProviderApi } from '../scripted-provider.js'
import type { WireBody, WireReply, ApiRequest } from '../wire/api.js'
import { chatApi } from '../wire/chat.js'
import { geminiApi, withTarget } from '../wire/gemini.js'
import { messagesApi } from '../wire/messages.js'
import { responsesApi } from '../wire/responses.js'
import { messageOf } from '#contracts/errors.js'
import { abortable } from '#util/abort.js'
import type { JsonObject } from '#util/json.js'
import { isObject, jsonOr } from '#util/json.js'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'

/** The server's side of an API, for tests of its adapter: it reads requests and writes replies. */
export interface ConformanceApi {
  /** Reads a request. Throws for a request that the API rejects: the stricter, the better the tests. */
  read(request: ConformanceRequest): ReadRequest
  /** The body of a whole reply. */
  whole(reply: WireReply): JsonObject
  /** The same reply as a stream: the text of its events, in order. */
  stream(reply: WireReply): readonly string[]
  /** The body of an answer with an error status; it contains `message`. */
  error(status: number, message: string): JsonObject
  /** True if a request asks for a stream. Default: its `stream` is true. */
  isStreamed?(body: WireBody): boolean
  /** An id for the call of this number. Default `call_1` and so on. */
  callId?(ordinal: number): string
  /** A piece of a reply that the API does not have yet, with `mark` in it. Default: there can be none. */
  unknownBlock?(mark: string): JsonObject
  /** Is called with each reply, for an API that stores conversations. */
  keep?(request: ReadRequest, reply: WireReply): void
}

/** A request as it was sent; `url` has its path and query. */
export type ConformanceRequest = ApiRequest & { readonly url: string }

/** A request as a server understands it. */
export interface ReadRequest {
  /** The conversation, without instructions. */
  readonly messages: readonly ScriptMessage[]
  readonly instructions: string
  /** Names of the tools that are offered. */
  readonly tools: readonly string[]
  /** True if the server stores earlier messages and the request does not contain them. Default false. */
  readonly isContinuation?: boolean
}

/** The server's side of an API that is known here. */
export function knownApi(name: ProviderApi): ConformanceApi {
  switch (name) {
    case 'responses':
      return { ...responsesApi(), unknownBlock: (mark) => ({ type: 'future_item', id: `fu_${mark}`, note: mark }) }
    case 'chat':
      return { ...chatApi('openai'), unknownBlock: unknownField }
    case 'openrouter':
      return { ...chatApi('openrouter'), unknownBlock: unknownField }
    case 'messages':
      return { ...messagesApi(), unknownBlock: (mark) => ({ type: 'future_block', note: mark }) }
    case 'gemini':
      return { ...geminiApi, unknownBlock: (mark) => ({ futurePart: { note: mark } }) }
  }
}

function unknownField(mark: string): JsonObject {
  return { future_field: { note: mark } }
}

/** Two ways to the same server, for the creation of an adapter. */
export interface ConformanceServer {
  /** Sends any request to the server, in memory. The reply arrives in exactly the pieces that a law wants. */
  readonly fetch: typeof globalThis.fetch
  /** A server on this machine, without a path: every path is equal. */
  readonly baseUrl: string
}

/** The answer to a request. */
export type StagedDelivery =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly words: string }
  | {
      readonly reply: Omit<WireReply, 'body' | 'model'>
      /** The bytes in the pieces in which they arrive. Default: all at once. */
      readonly cut?: (bytes: Buffer) => readonly Buffer[]
      /** What follows the last piece. Default `end`. */
      readonly then?: 'end' | 'stall'
    }
  | 'no_answer'

/** A received request. */
export interface ReadWireRequest {
  readonly body: WireBody
  readonly read: ReadRequest
}

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly pieces: readonly Buffer[]
  readonly stalls: boolean
}

/** A server of one API that answers as a law wants, over a `fetch` of its own and over HTTP. */
export class Stage implements ConformanceServer {
  readonly heard: ReadWireRequest[] = []
  /** The API's reason for rejecting the last request; null if it did not. */
  refusal: string | null = null
  readonly baseUrl: string
  readonly api: ConformanceApi
  #next: StagedDelivery | null = null

  /** @internal */
  constructor(api: ConformanceApi, server: Server) {
    this.api = api
    this.baseUrl = serverOrigin(server)
    server.on('request', (request: IncomingMessage, response: ServerResponse) => void this.#serve(request, response))
  }

  /** Sets the answer to the next request. */
  answers(delivery: StagedDelivery): void {
    this.#next = delivery
    this.refusal = null
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    const { signal } = request
    signal.throwIfAborted()
    const { url, headers } = request
    const answer = this.#answer({ url, headers: Object.fromEntries(headers) }, await request.text())
    if (answer === null) return await abortable(waitForever(), signal)
    signal.throwIfAborted()
    return new Response(bodyStream(answer, signal), { status: answer.status, headers: answer.headers })
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await readRequestBody(request)
    if (bytes === undefined) return
    const { url = '/', headers } = request
    const answer = this.#answer({ url: `${this.baseUrl}${url}`, headers }, bytes.toString())
    if (answer === null) return
    response.writeHead(answer.status, answer.headers)
    for (const piece of answer.pieces) {
      if (response.destroyed) return
      response.write(piece)
      await setImmediate()
    }
    if (!answer.stalls) response.end()
  }

  /** Null: no answer. */
  #answer(sent: Omit<ConformanceRequest, 'body'>, text: string): Answer | null {
    const parsed = jsonOr(text, undefined)
    try {
      if (!isObject(parsed)) throw new Error('The body of a request is not a JSON object.')
      const body = withTarget(sent.url, parsed)
      const read = this.api.read({ ...sent, body })
      this.heard.push({ body, read })
      return this.#delivered(body, read)
    } catch (error) {
      this.refusal = messageOf(error)
      return wholeAnswer(400, this.api.error(400, this.refusal))
    }
  }

  #delivered(body: WireBody, read: ReadRequest): Answer | null {
    const delivery = this.#next
    this.#next = null
    if (delivery === null) throw new Error('One request was expected, and another one was sent.')
    if (delivery === 'no_answer') return null
    if ('status' in delivery)
      return wholeAnswer(delivery.status, this.api.error(delivery.status, delivery.words), delivery.headers)
    const reply = { ...delivery.reply, model: String(body['model']), body }
    this.api.keep?.(read, reply)
    const isStream = this.api.isStreamed?.(body) ?? body['stream'] === true
    const events = isStream ? this.api.stream(reply) : [JSON.stringify(this.api.whole(reply))]
    const bytes = Buffer.from(events.join(''))
    return {
      status: 200,
      headers: { 'content-type': isStream ? 'text/event-stream; charset=utf-8' : 'application/json' },
      pieces: delivery.cut?.(bytes) ?? [bytes],
      stalls: delivery.then === 'stall',
    }
  }
}

/** Opens a server for `work` and closes it afterwards. */
export async function onStage<T>(api: ConformanceApi, work: (stage: Stage) => Promise<T>): Promise<T> {
  const server = await openServer()
  try {
    return await work(new Stage(api, server))
  } finally {
    await closeServer(server)
  }
}

function waitForever(): Promise<never> {
  return new Promise(() => undefined)
}

function wholeAnswer(status: number, body: JsonObject, headers: Readonly<Record<string, string>> = {}): Answer {
  const pieces = [Buffer.from(JSON.stringify(body))]
  return { status, headers: { 'content-type': 'application/json', ...headers }, pieces, stalls: false }
}

function bodyStream({ pieces, stalls }: Answer, signal: AbortSignal): ReadableStream<Uint8Array> {
  let next = 0
  return new ReadableStream<Uint8Array>({
    start(controller) {
      signal.addEventListener('abort', () => controller.error(signal.reason), { once: true })
    },
    pull(controller) {
      const piece = pieces[next++]
      if (piece !== undefined) controller.enqueue(piece)
      else if (!stalls) controller.close()
      else return waitForever()
      return undefined
    },
  })
}
