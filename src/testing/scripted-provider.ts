import { TOKEN_FIELDS, UNREPORTED_USAGE } from '#contracts/entry.js'
import { scriptRequest } from './script-request.js'
import type { ScriptRequest } from './script-request.js'
import { breakOff, deliverReply, dripReply, sendBytes } from './delivery.js'
import type { BreakFault, Chunks, DripFault, ProviderFault, StatusFault, Rendering } from './delivery.js'
import { readRequestBody, closeServer, openServer, serverOrigin, sendBody, withoutKeys } from './http-server.js'
import type { ScriptedReply } from './reply.js'
import { resolveReply, withCallIds } from './reply.js'
import { isFault, Script, ScriptEnded } from './scripted-replies.js'
import { WireRefusal } from './wire/api.js'
import type { WireApi, WireBody, WireConversation, WireReply } from './wire/api.js'
import { chatApi } from './wire/chat.js'
import { withoutMarks } from './wire/checks.js'
import { geminiApi, plainPath, withTarget } from './wire/gemini.js'
import { messagesApi } from './wire/messages.js'
import { responsesApi } from './wire/responses.js'
import type { TokenUsage } from '#contracts/entry.js'
import { messageOf } from '#contracts/errors.js'
import { parse } from '#contracts/parse.js'
import { isObject, jsonOr } from '#util/json.js'
import { boolean, either, integer, oneOf, partial } from '#util/validate.js'
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { socketAnswer } from './socket-answer.js'
import { takeWebSocket } from './wire/websocket.js'

/** The API of a request. */
export type ProviderApi = 'responses' | 'chat' | 'openrouter' | 'messages' | 'gemini'

export interface ScriptedProviderOptions {
  /** The pieces of streamed replies: single events, the whole reply, or a number of bytes. Default `event`. */
  readonly chunks?: Chunks | undefined
  /**
   * Keep every request in `requests`. Default true. Without it a constant `always` is answered with the same bytes
   * each time, its input tokens 0 unless it says otherwise, and requests are not even parsed: for a load server.
   */
  readonly record?: boolean | undefined
  /** Default: a free port. */
  readonly port?: number | undefined
}

/** A request as a function of the script sees it. */
export interface ProviderRequest extends ScriptRequest {
  readonly api: ProviderApi
  /** The requested model. */
  readonly model: string
  readonly streamed: boolean
  readonly headers: IncomingHttpHeaders
  readonly body: WireBody
}

/** A received request, recorded for assertions. */
export interface RecordedRequest {
  readonly method: string
  readonly path: string
  /** Without API keys. */
  readonly headers: IncomingHttpHeaders
  /** Parsed; a string if it is not JSON. */
  readonly body: unknown
}

/**
 * A model provider on this machine that follows a script, for tests over HTTP: OpenAI's Responses and chat completions
 * APIs (Responses over a WebSocket too), OpenRouter's, Anthropic's Messages API and the Gemini API, streamed when the request says so.
 *
 * ```ts
 * await using provider = await scriptedProvider()
 * provider.fails(429, { headers: { 'retry-after': '0' } }).calls('read', { path: 'a.txt' }).says('Done.')
 * const model = anthropic('claude-sonnet-5', { apiKey: 'any', baseUrl: provider.url.messages })
 * ```
 *
 * It is as strict as the APIs: a request whose tool results do not fit its calls, whose reasoning was changed, or which
 * lacks a required field, gets status 400 with the API's own message. Such a request, a request without a line and a line
 * without a request fail `assertDone()`, which the end of an `await using` block calls.
 * For concurrent runs, compute replies from the conversation: `provider.always(({ turn, heard }) => …)`.
 * Usage is estimated from the lengths of the texts, and the common beginning with an earlier request is read from a cache.
 */
export async function scriptedProvider(options: ScriptedProviderOptions = {}): Promise<ScriptedProvider> {
  const parsed = parse(OPTIONS, options, '`scriptedProvider`')
  return new ScriptedProvider(await openServer(parsed.port), parsed)
}

const OPTIONS = partial<ScriptedProviderOptions>({
  chunks: either(oneOf('event', 'whole'), integer(1)),
  record: boolean,
  port: integer(0, 65_535),
})

interface Route {
  readonly name: ProviderApi
  readonly api: WireApi
}

/** Made by `scriptedProvider`. */
export class ScriptedProvider extends Script<ProviderRequest, ProviderFault> {
  /** The `baseUrl` for each API. */
  readonly url: Readonly<Record<ProviderApi, string>>
  /** The requests so far, including rejected ones. */
  readonly requests: RecordedRequest[] = []
  protected readonly title = 'the scripted provider'
  readonly #server: Server
  readonly #routes: ReadonlyMap<string, Route>
  readonly #chunks: Chunks
  readonly #record: boolean
  readonly #renderer = new Renderer()
  readonly #sockets = new Set<Duplex>()
  /** The bytes of constant answers, by API and form. */
  readonly #constants = new WeakMap<ScriptedReply, Map<string, Buffer>>()

  /** @internal */
  constructor(server: Server, { chunks = 'event', record = true }: ScriptedProviderOptions) {
    super()
    const origin = serverOrigin(server)
    this.url = {
      ...{ responses: `${origin}/v1`, chat: `${origin}/v1`, openrouter: `${origin}/api/v1`, messages: origin },
      gemini: `${origin}/v1beta`,
    }
    this.#server = server
    this.#chunks = chunks
    this.#record = record
    this.#routes = new Map<string, Route>([
      ['/v1/responses', { name: 'responses', api: responsesApi() }],
      ['/v1/chat/completions', { name: 'chat', api: chatApi('openai') }],
      ['/api/v1/chat/completions', { name: 'openrouter', api: chatApi('openrouter') }],
      ['/v1/messages', { name: 'messages', api: messagesApi() }],
      ['/v1beta/generateContent', { name: 'gemini', api: geminiApi }],
    ])
    server.on('request', (request: IncomingMessage, response: ServerResponse) => void this.#serve(request, response))
    server.on('upgrade', (request: IncomingMessage, socket: Duplex) => this.#take(request, socket))
  }

  /** An answer with this status, in the API's form of an error unless `body` says otherwise. */
  fails(status: number, fault: Omit<StatusFault, 'fault' | 'status'> = {}): this {
    return this.add(`fails with ${status}`, { fault: 'status', status, ...fault })
  }

  /** A reply that arrives incomplete or damaged. */
  breaks(how: BreakFault['how'], fault: Omit<BreakFault, 'fault' | 'how'> = {}): this {
    return this.add(`breaks with \`${how}\``, { fault: 'break', how, ...fault })
  }

  /** A reply that is sent slowly, in drops. */
  drips(reply: ScriptedReply | string, fault: Omit<DripFault, 'fault' | 'reply'> = {}): this {
    return this.add('drips', { fault: 'drip', reply, ...fault })
  }

  /** Cuts all connections and stops listening. */
  close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    return closeServer(this.#server)
  }

  override [Symbol.dispose](): void {
    void this.close()
    this.assertDone()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
    this.assertDone()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await readRequestBody(request)
    if (bytes === undefined) return
    const { method = '', url: path = '', headers } = request
    const route = method === 'POST' ? this.#routes.get(plainPath(path)) : undefined
    try {
      const streams = path.includes(':stream') || bytes.includes('"stream":true') || bytes.includes('"stream": true')
      if (route !== undefined && this.#sendConstant(route, streams, response)) return
      const text = bytes.toString()
      const body = jsonOr(text, undefined)
      if (this.#record) this.requests.push({ method, path, headers: withoutKeys(headers), body: body ?? text })
      if (route === undefined) throw new WireRefusal(`Unknown request URL: ${method} ${path}`, {}, 404)
      await this.#answer(route, headers, { body: isObject(body) ? withTarget(path, body) : body, response })
    } catch (error) {
      this.#refuse(route?.api ?? messagesApi(), error, response)
    }
  }

  /** Responses over a WebSocket: the connection has its own memory of them. */
  #take(upgrade: IncomingMessage, socket: Duplex): void {
    const { url: path = '', headers } = upgrade
    if (plainPath(path) !== '/v1/responses') {
      socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
      return
    }
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    const api = responsesApi(true)
    takeWebSocket(upgrade, socket, (text, from) => {
      const body = jsonOr(text, undefined)
      if (this.#record)
        this.requests.push({ method: 'WEBSOCKET', path, headers: withoutKeys(headers), body: body ?? text })
      const response = socketAnswer(from)
      const answer = async (): Promise<void> =>
        this.#answer({ name: 'responses', api }, headers, { body: createdBy(body), response })
      answer().catch((error: unknown) => this.#refuse(api, error, response))
    })
  }

  async #answer(
    route: Route,
    headers: IncomingHttpHeaders,
    { body, response }: { readonly body: unknown; readonly response: ServerResponse },
  ): Promise<void> {
    const { api, name } = route
    if (!isObject(body)) throw new WireRefusal('We could not parse the JSON body of your request.')
    const conversation = api.read({ headers, body })
    const { messages, instructions, tools } = conversation
    const to: ReplyTo = { api, conversation, model: String(body['model']), streamed: body['stream'] === true }
    const { model, streamed } = to
    const request = { ...scriptRequest(messages, instructions, tools), api: name, model, streamed, headers, body }
    const answer = await this.answer(request)
    if (response.destroyed) return
    if (isFault(answer)) await this.#fail(answer, to, response)
    else await deliverReply(response, this.#renderer.render(answer, to), this.#chunks)
  }

  async #fail(fault: ProviderFault, to: ReplyTo, response: ServerResponse): Promise<void> {
    switch (fault.fault) {
      case 'status': {
        const { status, message = `This is a scripted error of status ${status}.`, headers, body } = fault
        sendBody(response, status, { body: body ?? to.api.error(status, message), headers })
        return
      }
      case 'break': {
        const { reply = 'This reply does not arrive as it should.' } = fault
        const message = 'This is a scripted error in a reply.'
        const error = to.streamed ? to.api.errorEvent(message) : JSON.stringify(to.api.error(500, message))
        await breakOff(response, this.#renderer.render(reply, to), { fault, error })
        return
      }
      case 'drip':
        await dripReply(response, this.#renderer.render(fault.reply, to), fault)
    }
  }

  /** The failure is the client's or the script's: a retry cannot help. */
  #refuse(api: WireApi, error: unknown, response: ServerResponse): void {
    const message = messageOf(error)
    if (error instanceof WireRefusal) this.note(`A request was refused: ${message}`)
    else if (!(error instanceof ScriptEnded)) this.note(`A line failed: ${message}`)
    if (response.headersSent) {
      response.destroy()
      return
    }
    const [status, details] = error instanceof WireRefusal ? [error.status, error.details] : [400, {}]
    sendBody(response, status, { body: api.error(status, message, details) })
  }

  /** Answers without reading the request, if nothing depends on it. */
  #sendConstant({ api, name }: Route, streamed: boolean, response: ServerResponse): boolean {
    const answer = this.#record ? null : this.constant
    if (answer === null || isFault(answer)) return false
    const known = this.#constants.get(answer) ?? new Map<string, Buffer>()
    this.#constants.set(answer, known)
    let made = known.get(`${name} ${streamed}`)
    if (made === undefined) {
      const body = streamed ? { stream_options: { include_usage: true } } : {}
      const conversation = { messages: [], instructions: '', tools: [], body, prefix: [], cacheable: 0 }
      const { events } = this.#renderer.render(answer, { api, conversation, model: 'scripted', streamed })
      made = Buffer.from(events.join(''))
      known.set(`${name} ${streamed}`, made)
    }
    sendBytes(response, made, streamed)
    return true
  }
}

/** The request in a message; every response over a WebSocket is a stream. */
function createdBy(message: unknown): unknown {
  if (!isObject(message)) return message
  const { type, ...body } = message
  if (type !== 'response.create')
    throw new WireRefusal(`Invalid value: '${String(type)}'. Supported values are: 'response.create'.`)
  const name = ['stream', 'background'].find((each) => each in body)
  if (name !== undefined) throw new WireRefusal(`Unknown parameter: '${name}'.`, { param: name })
  return { ...body, stream: true }
}

/** The request of a reply and the form of the answer. */
export interface ReplyTo {
  readonly api: WireApi
  readonly conversation: WireConversation
  readonly model: string
  readonly streamed: boolean
}

/** 2026-01-01, in seconds: times are counted, not read, so that the same script gives the same bytes. */
const FIRST_CREATED = 1_767_225_600

/** Gives replies their ids and prices, and writes them in the form of an API. */
class Renderer {
  readonly #cache = new PromptCache()
  #count = 0

  render(reply: ScriptedReply | string, to: ReplyTo): Rendering {
    const wireReply = this.#finish(reply, to)
    to.api.keep?.(to.conversation, wireReply)
    if (to.streamed) return { events: to.api.stream(wireReply), isStream: true }
    return { events: [JSON.stringify(to.api.whole(wireReply))], isStream: false }
  }

  #finish(reply: ScriptedReply | string, to: ReplyTo): WireReply {
    const { api, conversation, model } = to
    const { parts, finishReason, nativeFinishReason, usage } = resolveReply(reply)
    const count = ++this.#count
    const numbered = withCallIds(parts, conversation.messages, api.callId)
    return {
      id: count.toString(16).padStart(24, '0'),
      created: FIRST_CREATED + count,
      model,
      parts: numbered,
      finishReason,
      nativeFinishReason,
      usage: usage === null ? null : this.#price(usage, numbered, to),
      body: conversation.body,
    }
  }

  #price(given: Partial<TokenUsage>, parts: WireReply['parts'], { api, conversation, model }: ReplyTo): TokenUsage {
    if (TOKEN_FIELDS.every((field) => given[field] !== undefined)) return { ...UNREPORTED_USAGE, ...given }
    const input = this.#cache.inputOf(conversation, model)
    const free = api.chargesCacheWrites ? {} : { cacheWriteTokens: 0 }
    return { ...UNREPORTED_USAGE, ...input, ...free, ...outputTokensOf(parts), ...given }
  }
}

interface Prefix {
  readonly longer: Map<string, Prefix>
}

const CHARACTERS_A_TOKEN = 4
/** The cache is cleared above this: about 64 MiB. */
const MOST_CHARACTERS = 32 * 1024 * 1024

/**
 * The cost of requests and replies, estimated from the lengths of their texts: the same for the same conversation. The
 * common beginning with an earlier request, tools and instructions included, is read from the cache, however short.
 */
class PromptCache {
  #root: Prefix = { longer: new Map() }
  #characters = 0

  /** The cost of a request. Remembers its beginning as far as the API may; `scope` names the cache. */
  inputOf(
    { prefix, cacheable }: WireConversation,
    scope: string,
  ): Pick<TokenUsage, 'inputTokens' | 'cacheReadTokens' | 'cacheWriteTokens'> {
    if (this.#characters > MOST_CHARACTERS) {
      this.#root = { longer: new Map() }
      this.#characters = 0
    }
    let at = this.#root.longer.get(scope) ?? this.#keep(this.#root, scope)
    let [all, read, written] = [0, 0, 0]
    for (const [index, member] of prefix.entries()) {
      const text = withoutMarks(member)
      const tokens = countTokensFor(text.length)
      all += tokens
      if (index >= cacheable) continue
      const known = at.longer.get(text)
      if (known === undefined) written += tokens
      else read += tokens
      at = known ?? this.#keep(at, text)
    }
    return { inputTokens: all, cacheReadTokens: read, cacheWriteTokens: written }
  }

  #keep(at: Prefix, text: string): Prefix {
    const prefix = { longer: new Map<string, Prefix>() }
    at.longer.set(text, prefix)
    this.#characters += text.length
    return prefix
  }
}

/** The cost of a reply. */
function outputTokensOf(parts: WireReply['parts']): Pick<TokenUsage, 'outputTokens' | 'reasoningTokens'> {
  let [outputTokens, reasoningTokens] = [0, 0]
  for (const part of parts) {
    const tokens = countTokensFor(part.type === 'call' ? part.name.length + part.arguments.length : partLength(part))
    outputTokens += tokens
    if (part.type === 'reasoning') reasoningTokens += tokens
  }
  return { outputTokens, reasoningTokens }
}

function partLength(part: Exclude<WireReply['parts'][number], { type: 'call' }>): number {
  return part.type === 'block' ? JSON.stringify(part.data).length : part.text.length
}

function countTokensFor(characters: number): number {
  return Math.ceil(characters / CHARACTERS_A_TOKEN)
}
