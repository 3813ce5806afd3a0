import type { IncomingMessage, ServerResponse } from 'node:http'
import { defineTool, Harness } from 'thinharness'
import type { HarnessOptions, Model } from 'thinharness'
import { openai } from 'thinharness/providers'
import type { OpenAiOptions } from 'thinharness/providers'
import { socketServer } from '../../support/websocket-server.js'
import type { SocketServer } from '../../support/websocket-server.js'
import type { ServerSocket } from '#testing/wire/websocket.js'
import { call, eventsOf, message, response } from './replies.js'

/** What the server does with one request. */
export type Deed =
  | 'answers'
  | 'is_silent'
  | 'cuts_before'
  | 'cuts_midway'
  | 'closes_after'
  | 'forgets'
  | 'is_full'
  | 'is_too_old'
  | 'refuses_next'

interface Body {
  readonly type?: string
  readonly stream?: boolean
  readonly store?: boolean
  readonly previous_response_id?: string
  readonly input: readonly Item[]
}

interface Item {
  readonly type?: string
  readonly role?: string
  readonly call_id?: string
  readonly output?: string
}

/** A request as the server understood it. */
export interface Understood {
  readonly body: Body
  readonly bytes: number
  readonly over: 'websocket' | 'http'
  /** The whole conversation that it continues, an item a word. */
  readonly conversation: readonly string[]
  readonly deed: Deed
}

/** The Responses API over WebSockets, following its documentation: each connection has its latest response in its memory. */
export class SocketStage implements AsyncDisposable {
  readonly requests: Understood[] = []
  readonly server: SocketServer
  /** Called with each request that comes over a connection. */
  onRequest = (): void => undefined
  readonly #turns: number
  readonly #deeds: Deed[]
  #count = 0
  #refusals = 0

  static async open(turns: number, deeds: readonly Deed[] = [], refusals = 0): Promise<SocketStage> {
    const opened: { stage?: SocketStage } = {}
    const server = await socketServer({
      accept: (socket) => opened.stage!.#accept(socket),
      refuses: () => (opened.stage!.#refusals-- > 0 ? 503 : null),
      answer: (request, reply) => void opened.stage!.#answer(request, reply),
    })
    return (opened.stage = new SocketStage(server, turns, deeds, refusals))
  }

  private constructor(server: SocketServer, turns: number, deeds: readonly Deed[], refusals: number) {
    this.server = server
    this.#turns = turns
    this.#deeds = [...deeds]
    this.#refusals = refusals
  }

  model(options: OpenAiOptions = {}): Model {
    const baseUrl = `${this.server.origin}/v1`
    return openai('gpt-5.5', { apiKey: 'k', baseUrl, transport: 'websocket', maxRetries: 9, ...options })
  }

  harness(more: HarnessOptions = {}, options: OpenAiOptions = {}): Harness {
    const lookup = defineTool({
      name: 'lookup',
      description: 'Looks it up.',
      parameters: { type: 'object', properties: { n: { type: 'string' } } },
      handler: () => 'found',
    })
    const limits = { modelRequests: 1_000, toolCalls: 1_000 }
    return new Harness({ model: this.model(options), tools: [lookup], builtinTools: [], limits, ...more })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]()
  }

  #accept(socket: ServerSocket): (text: string) => void {
    const kept = new Map<string, readonly string[]>()
    const send = (event: unknown): void => socket.send(JSON.stringify(event))
    return (text) => {
      const body = JSON.parse(text) as Body
      const deed = this.#deeds.shift() ?? 'answers'
      const { previous_response_id: id } = body
      const before = id === undefined ? [] : kept.get(id)
      // The latest response only, and none after a failure.
      kept.clear()
      if (before === undefined || (deed === 'forgets' && id !== undefined)) return send(notFound(id))
      const conversation = [...before, ...body.input.map(word)]
      this.requests.push({ body, bytes: text.length, over: 'websocket', conversation, deed })
      this.onRequest()
      if (deed === 'is_silent') return
      if (deed === 'cuts_before') return socket.cut()
      if (deed === 'is_full') return send(overloaded)
      if (deed === 'is_too_old') return send(tooOld)
      if (deed === 'refuses_next') this.#refusals += 1
      const reply = this.#reply(conversation)
      const events = eventsOf(reply)
      if (deed === 'cuts_midway') {
        for (const event of events.slice(0, 3)) send(event)
        return setImmediate(() => socket.cut())
      }
      kept.set(String(reply['id']), [...conversation, ...(reply['output'] as Item[]).map(word)])
      for (const event of events) send(event)
      if (deed === 'closes_after' || deed === 'refuses_next') socket.close()
    }
  }

  async #answer(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const text = Buffer.concat(pieces).toString()
    const body = JSON.parse(text) as Body
    const conversation = body.input.map(word)
    this.requests.push({ body, bytes: text.length, over: 'http', conversation, deed: 'answers' })
    const reply = this.#reply(conversation)
    if (body.stream !== true) {
      answer.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply))
      return
    }
    const events = eventsOf(reply).map((event) => `data: ${JSON.stringify(event)}\n\n`)
    answer.writeHead(200, { 'content-type': 'text/event-stream' }).end(events.join(''))
  }

  /** The next call, or the answer after the last of them. */
  #reply(conversation: readonly string[]): ReturnType<typeof response> {
    const results = conversation.filter((each) => each.startsWith('result')).length
    const args = JSON.stringify({ n: String(results).padStart(4, '0') })
    const item = results < this.#turns - 1 ? call(callId(results), args) : message('Done.')
    return response([item], { id: `resp_${String((this.#count += 1)).padStart(4, '0')}` })
  }
}

/** The conversation before the reply of a turn, counted from 0. */
export function expectedAt(turn: number): readonly string[] {
  const rounds = Array.from({ length: turn }, (_, index) => [`call ${callId(index)}`, `result ${callId(index)}`])
  return ['user', ...rounds.flat()]
}

function callId(index: number): string {
  return `call_${String(index).padStart(4, '0')}`
}

function word({ type, role, call_id: id }: Item): string {
  if (type === 'function_call') return `call ${id}`
  return type === 'function_call_output' ? `result ${id}` : (role ?? type ?? '')
}

function notFound(id: unknown): unknown {
  const text = `Previous response with id '${String(id)}' not found.`
  return errorEvent(400, { code: 'previous_response_not_found', message: text, param: 'previous_response_id' })
}

const tooOld = errorEvent(400, {
  code: 'websocket_connection_limit_reached',
  message: 'Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue.',
})

const overloaded = {
  ...errorEvent(503, { type: 'server_error', code: 'server_is_overloaded', message: 'Try again later.' }),
  headers: { 'Retry-After-Ms': '1' },
}

function errorEvent(status: number, error: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> {
  return { type: 'error', status, error: { type: 'invalid_request_error', ...error } }
}
