import type { HarnessDescription } from '../../index.js'
import { FINAL_RESULT } from '../../output/format.js'
import type { ThreadItem } from '../../session/index.js'
import { CLIENT_TOOLS, clientToolsIn } from '../../session/tools/client-tools.js'
import type { ClientTool } from '../../session/tools/client-tools.js'
import { Hub } from '../hub/hub.js'
import type { AnyRunEvent } from '../projection.js'
import { framesOf } from '../http/frames.js'
import type { Protocol } from '../http/frames.js'
import { SSE_HEADERS, sseBody } from '../http/sse.js'
import { RequestError } from './back-end.js'
import type { Access, BackEnd, ThreadPort } from './back-end.js'
import { HarnessBackEnd, threadsByMetadata } from './harness-back-end.js'
import { asRequestError, badRequest, refusal } from './http.js'
import { accessOf, checkSource } from './options.js'
import type { Action, HandlerOptions, Named } from './options.js'
import { SessionsBackEnd } from './sessions-back-end.js'

/** Answers a request: the form of every handler. */
export type Handler = (request: Request) => Promise<Response>

/** What every handler has: the conversations, and who may reach them. */
export class Gate {
  readonly options: HandlerOptions
  readonly #backEnd: BackEnd

  /** Throws `invalid_options`. */
  constructor(options: HandlerOptions) {
    checkSource(options)
    this.options = options
    this.#backEnd = backEndOf(options)
  }

  get maxBodyBytes(): number {
    return this.options.maxBodyBytes ?? 4_194_304
  }

  /** A handler whose refusals are answers. `form`: how they are written. */
  handler(
    answer: (request: Request, url: URL) => Promise<Response>,
    form: (error: RequestError) => Response = refusal,
  ): Handler {
    return async (request) => {
      try {
        return await answer(request, new URL(request.url))
      } catch (error) {
        const refused = asRequestError(error)
        return refused === null
          ? form(new RequestError(500, 'error', { message: 'Something went wrong.' }))
          : form(refused)
      }
    }
  }

  /** The conversation that a request names, for its owner. A `Response` is sent as it is. */
  async thread(
    request: Request,
    {
      threadId,
      action,
      create = false,
    }: { readonly threadId: string; readonly action: Action; readonly create?: boolean },
  ): Promise<ThreadPort | Response> {
    const access = await accessOf(request, this.options.authorize, { threadId, runId: null, action })
    if (access instanceof Response) return access
    return this.#found(await this.#backEnd.thread(threadId, access, { create }))
  }

  /** The conversation of the run that a request names, for its owner. */
  async run(
    request: Request,
    { runId, action }: { readonly runId: string; readonly action: Action },
  ): Promise<ThreadPort | Response> {
    const threadId = await this.#backEnd.threadOf(runId)
    const access: Access | Response = await accessOf(request, this.options.authorize, { threadId, runId, action })
    if (access instanceof Response) return access
    return this.#found(threadId === null ? null : await this.#backEnd.thread(threadId, access))
  }

  /** The answer to a request that is refused; null for one that is allowed. */
  async checked(request: Request, named: Named): Promise<Response | null> {
    const access = await accessOf(request, this.options.authorize, named)
    return access instanceof Response ? access : null
  }

  /** What the agent can do; null if the source does not say. */
  async description(): Promise<HarnessDescription | null> {
    const { sessions, harness } = this.options
    const source: { describe?: () => Promise<HarnessDescription> } | undefined = sessions ?? harness
    return (await source?.describe?.()) ?? null
  }

  /**
   * The metadata of a message with tools of its page; undefined without any. Rejects those that cannot be sent to a model, and
   * those with the name of a tool of the server: the run could not begin.
   */
  async clientTools(tools: readonly ClientTool[]): Promise<object | undefined> {
    if (tools.length === 0) return undefined
    const metadata = { [CLIENT_TOOLS]: tools }
    clientToolsIn(metadata)
    const taken = new Set((await this.description())?.tools.map(({ name }) => name)).add(FINAL_RESULT)
    for (const { name } of tools) {
      if (taken.has(name)) throw badRequest(`Expected the tools to have names of their own; \`${name}\` is taken.`)
      taken.add(name)
    }
    return metadata
  }

  /** The conversations of the owner who asks. */
  async list(
    request: Request,
    page: { readonly limit: number; readonly before?: string },
  ): Promise<AsyncIterable<ThreadItem> | Response> {
    const named = { threadId: null, runId: null, action: 'read' } as const
    const access = await accessOf(request, this.options.authorize, named)
    if (access instanceof Response) return access
    return this.#backEnd.list?.(access, page) ?? unknown()
  }

  /** The answer with the stream of a protocol. */
  stream<Item>(
    request: Request,
    batches: AsyncIterable<readonly AnyRunEvent[]>,
    { protocol, headers, preamble, abort, finale }: StreamAnswer<Item>,
  ): Response {
    const { heartbeatMs, maxStreamMs } = this.options
    const frames = framesOf(batches, protocol, finale)
    const body = sseBody(frames, { preamble, heartbeatMs, maxStreamMs, request, onCancel: () => abort.abort() })
    return new Response(body, { headers: { ...SSE_HEADERS, ...headers } })
  }

  #found(thread: ThreadPort | null): ThreadPort | Response {
    return thread ?? unknown()
  }
}

function unknown(): Response {
  return refusal(new RequestError(404, 'not_found', { message: 'There is no such conversation or run.' }))
}

export interface StreamAnswer<Item> {
  readonly protocol: Protocol<Item>
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** What the body begins with. */
  readonly preamble?: string | undefined
  /** What the body ends with. */
  readonly finale?: string | undefined
  /** Ends the reading of the events. */
  readonly abort: AbortController
}

function backEndOf(options: HandlerOptions): BackEnd {
  const { sessions, harness, log, threads, newMessage } = options
  if (sessions !== undefined) return new SessionsBackEnd(sessions, options.hub ?? new Hub({ log: sessions.log }))
  // `checkSource` has made sure of both.
  if (harness === undefined || log === undefined) throw new TypeError('There is no harness.')
  const hub = options.hub ?? new Hub({ log })
  const index = threads ?? threadsByMetadata(log)
  const named = Object.entries(options.responses?.models ?? {})
  const harnesses = new Map(
    named.flatMap(([name, served]) => (typeof served === 'string' ? [] : [[name, served] as const])),
  )
  return new HarnessBackEnd({ harness, harnesses, log, hub, threads: index, declines: newMessage === 'decline' })
}
