import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http'
import { messageOf } from '#contracts/errors.js'
import { parse } from '#contracts/parse.js'
import { isObject } from '#util/json.js'
import { boolean, either, integer, oneOf, partial } from '#util/shape.js'
import { parsedJson, scriptRequest } from './conversation.js'
import type { ScriptRequest } from './conversation.js'
import { breakOff, deliverReply, dripReply, sendBytes } from './delivery.js'
import type { BreakFault, Chunks, DripFault, ProviderFault, StatusFault } from './delivery.js'
import { readRequestBody, closeServer, openServer, serverOrigin, sendBody, withoutKeys } from './http.js'
import { Renderer } from './rendering.js'
import type { ReplyTo } from './rendering.js'
import type { ScriptedReply } from './reply.js'
import { isFault, Script, ScriptEnded } from './script.js'
import { WireRefusal } from './wire/api.js'
import type { WireApi, WireBody } from './wire/api.js'
import { chatApi } from './wire/chat.js'
import { messagesApi } from './wire/messages.js'
import { responsesApi } from './wire/responses.js'

/** The API of a request. */
export type ProviderApi = 'responses' | 'chat' | 'openrouter' | 'messages'

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
 * APIs, OpenRouter's, and Anthropic's Messages API, streamed when the request says so.
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
  /** The bytes of constant answers, by API and form. */
  readonly #constants = new WeakMap<ScriptedReply, Map<string, Buffer>>()

  /** @internal */
  constructor(server: Server, { chunks = 'event', record = true }: ScriptedProviderOptions) {
    super()
    const origin = serverOrigin(server)
    this.url = { responses: `${origin}/v1`, chat: `${origin}/v1`, openrouter: `${origin}/api/v1`, messages: origin }
    this.#server = server
    this.#chunks = chunks
    this.#record = record
    this.#routes = new Map<string, Route>([
      ['/v1/responses', { name: 'responses', api: responsesApi() }],
      ['/v1/chat/completions', { name: 'chat', api: chatApi('openai') }],
      ['/api/v1/chat/completions', { name: 'openrouter', api: chatApi('openrouter') }],
      ['/v1/messages', { name: 'messages', api: messagesApi }],
    ])
    server.on('request', (request: IncomingMessage, response: ServerResponse) => void this.#serve(request, response))
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
    const route = method === 'POST' ? this.#routes.get(path.split('?')[0] ?? '') : undefined
    try {
      if (route !== undefined && this.#sendConstant(route, bytes, response)) return
      const text = bytes.toString()
      const body = parsedJson(text)
      if (this.#record) this.requests.push({ method, path, headers: withoutKeys(headers), body: body ?? text })
      if (route === undefined) throw new WireRefusal(`Unknown request URL: ${method} ${path}`, {}, 404)
      await this.#answer(route, headers, { body, response })
    } catch (error) {
      this.#refuse(route?.api ?? messagesApi, error, response)
    }
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
  #sendConstant({ api, name }: Route, bytes: Buffer, response: ServerResponse): boolean {
    const answer = this.#record ? null : this.constant
    if (answer === null || isFault(answer)) return false
    const streamed = bytes.includes('"stream":true') || bytes.includes('"stream": true')
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
