import { HarnessError, messageOf } from '#contracts/errors.js'
import type { HarnessDescription } from '#harness/launch/describe.js'
import type { LogStore } from '#core/log/log.js'
import type { RunSummary } from '#core/log/run-summary.js'
import { FINAL_RESULT } from '#core/state/output-format.js'
import type { ThreadItem } from '#session/sessions.js'
import { CLIENT_TOOLS, readClientTools } from '#session/tools/client-tools.js'
import type { ClientTool } from '#session/tools/client-tools.js'
import { textThrough } from '#core/extension/readers.js'
import { Hub } from '../hub/hub.js'
import { redactedBatches, redactedLog } from '../hub/redacted-log.js'
import type { RedactEvent } from '../hub/redacted-log.js'
import { checkAccess, LOCAL, notFound } from './authorization.js'
import type { Access, Action, RequestedPlace } from './authorization.js'
import { badRequest, errorCode, RequestError } from './http.js'
import { HostPaths } from './host-paths.js'
import { handlerOptions } from './options.js'
import type { HandlerOptions, ServedOptions } from './options.js'
import { LoneRun, Thread, ThreadFeed } from './thread.js'
import type { RunReading, ServedChat, ServedSessions } from './thread.js'

/** What every handler has: the conversations, and who may reach them. */
export class HandlerContext {
  readonly options: ServedOptions
  readonly #log: LogStore
  /** The log as readers may see it. */
  readonly #readerLog: LogStore
  readonly #hub: Hub
  #loading: Promise<ServedSessions> | undefined
  readonly #feeds = new WeakMap<ServedChat, ThreadFeed>()
  /** Conversations that are being created here, by id. */
  readonly #creating = new Map<string, Promise<unknown>>()

  /** Throws `invalid_options`. */
  constructor(given: HandlerOptions) {
    const options = handlerOptions(given)
    this.options = { ...options, paths: new HostPaths() }
    this.#log = handlerLog(options)
    this.#readerLog = redactedLog(this.#log, this.#redaction)
    this.#hub = options.hub ?? new Hub({ log: this.#readerLog })
  }

  /** The conversation that a request names, for its owner. A `Response` is sent as it is. */
  async thread(
    request: Request,
    wanted: {
      readonly threadId: string
      readonly action: Action
      readonly create?: boolean | undefined
      /** Is awaited once the request is allowed, before the conversation is opened. */
      readonly prepare?: (() => Promise<void>) | undefined
    },
  ): Promise<Thread | Response> {
    const { threadId, action, create = false, prepare } = wanted
    const access = await this.#accessOf(request, { threadId, runId: null, action })
    if (access instanceof Response) return access
    await prepare?.()
    const thread = await this.#open(threadId, access, create)
    if (thread === null) throw notFound()
    return thread
  }

  /** A conversation that a request begins without naming it. `threadIdOf`: its id, for an owner; once the request is allowed. */
  async begin(request: Request, threadIdOf: (access: Access) => Promise<string>): Promise<Thread | Response> {
    const access = await this.#accessOf(request, { threadId: null, runId: null, action: 'start' })
    if (access instanceof Response) return access
    const thread = await this.#open(await threadIdOf(access), access, true)
    if (thread === null) throw notFound()
    return thread
  }

  /** The conversation of the run that a request names, for its owner. A run that no conversation has stands alone. */
  async run(
    request: Request,
    { runId, action }: { readonly runId: string; readonly action: Action },
  ): Promise<Thread | LoneRun | Response> {
    const log = this.#log
    const summary = await log.inspect({ kind: 'run', id: runId })
    const top = await topRun(log, summary)
    const threadId = top === null ? null : runThreadId(top)
    const access = await this.#accessOf(request, { threadId, runId, action })
    if (access instanceof Response) return access
    if (summary === null || top === null) throw notFound()
    const thread = threadId === null ? null : await this.#open(threadId, access, false)
    if (thread?.hasRun(top.runId) === true) return thread
    const { resourceId: owner } = top.metadata
    const isOwn = owner === access.resourceId || (owner === undefined && access === LOCAL)
    if (!isOwn) throw notFound()
    return new LoneRun(summary, await this.#reading(top.runId))
  }

  /** The conversation of a run that a request changes. */
  async threadOfRun(
    request: Request,
    named: { readonly runId: string; readonly action: Action },
  ): Promise<Thread | Response> {
    const found = await this.run(request, named)
    if (!(found instanceof LoneRun)) return found
    throw new RequestError(409, 'not_supported', {
      message: 'The run belongs to no conversation: it can only be read.',
    })
  }

  /** A conversation that continues another one from the end of one of its runs; the one of that id if there is one. */
  async fork(
    { threadId, access }: Thread,
    { after, forkId }: { readonly after: string; readonly forkId: string },
  ): Promise<Thread> {
    const known = await this.#open(forkId, access, false)
    if (known !== null) return known
    const sessions = await this.#sessions()
    return this.#threadOf(await sessions.for(access).fork(threadId, { after, threadId: forkId }), access)
  }

  /** The answer to a request that is refused; null for one that is allowed. */
  async checked(request: Request, named: RequestedPlace): Promise<Response | null> {
    const access = await this.#accessOf(request, named)
    return access instanceof Response ? access : null
  }

  /** What the agent can do; null if the sessions do not say. */
  async description(): Promise<HarnessDescription | null> {
    return (await (await this.#sessions()).describe?.()) ?? null
  }

  /**
   * The metadata of a message with tools of its page; undefined without any. Rejects those that cannot be sent to a model, and
   * those with the name of a tool of the server: the run could not begin.
   */
  async clientTools(tools: readonly ClientTool[]): Promise<object | undefined> {
    if (tools.length === 0) return undefined
    const metadata = { [CLIENT_TOOLS]: tools }
    try {
      readClientTools(metadata)
    } catch (error) {
      throw badRequest(messageOf(error))
    }
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
    page: { readonly limit: number; readonly before?: string | undefined },
  ): Promise<AsyncIterable<ThreadItem> | Response> {
    const access = await this.#accessOf(request, { threadId: null, runId: null, action: 'read' })
    return access instanceof Response ? access : (await this.#sessions()).for(access).list(page)
  }

  /** A text as readers may see it. */
  async shownText(): Promise<(text: string) => string> {
    const redact = await this.#redaction()
    return (text) => textThrough(redact, text)
  }

  /** `runId`: of the run that is read first. */
  async #reading(runId: string | undefined): Promise<RunReading> {
    const [hub, isOwn] = [this.#hub, this.options.hub === undefined]
    const redact = await this.#redaction()
    if (runId !== undefined) await this.options.paths.learnRun(this.#log, runId)
    return {
      readerLog: this.#readerLog,
      batches(id, options) {
        const batches = hub.batches(id, options)
        // The hub of a host reads a log of its own.
        return isOwn ? batches : redactedBatches(batches, redact)
      },
    }
  }

  readonly #redaction = async (): Promise<RedactEvent> => {
    const sessions = await this.#sessions()
    return (event) => {
      this.options.paths.learn(event)
      return sessions.redact?.(event) ?? event
    }
  }

  #sessions(): Promise<ServedSessions> {
    return (this.#loading ??= handlerSessions(this.options))
  }

  #accessOf(request: Request, named: RequestedPlace): Promise<Access | Response> {
    return checkAccess(request, this.options, named)
  }

  /** The conversation of that owner; null if there is none. */
  async #open(threadId: string, access: Access, create: boolean): Promise<Thread | null> {
    // A request that comes behind the first message, such as a stop, waits for the conversation.
    if (!create) await this.#creating.get(threadId)
    if (!create && (await this.#log.inspect({ kind: 'thread', id: threadId })) === null) return null
    const opening = this.#sessions().then((sessions) => sessions.for(access).open(threadId))
    const settled = opening.catch(() => undefined)
    if (create) this.#creating.set(threadId, settled)
    try {
      return await this.#threadOf(await opening, access)
    } catch (error) {
      if (errorCode(error) === 'thread_not_found') return null
      throw error
    } finally {
      if (create) this.#creating.delete(threadId)
    }
  }

  async #threadOf(chat: ServedChat, access: Access): Promise<Thread> {
    const feed = this.#feeds.get(chat) ?? new ThreadFeed(chat, this.#hub)
    this.#feeds.set(chat, feed)
    return new Thread(chat, {
      ...(await this.#reading(chat.snapshot.runs.at(-1)?.runId)),
      access,
      log: this.#log,
      feed,
      declines: this.options.newMessage === 'decline',
    })
  }
}

/** The run that has a run as its child, or is it; null if it is not in the log. */
async function topRun(log: LogStore, run: RunSummary | null): Promise<RunSummary | null> {
  let top = run
  while (top !== null && top.parent !== null) top = await log.inspect({ kind: 'run', id: top.parent.runId })
  return top
}

function runThreadId({ metadata }: RunSummary): string | null {
  const threadId = metadata['conversation_id']
  return typeof threadId === 'string' ? threadId : null
}

/** The log of the sessions, or of the harness. Throws `invalid_options` for neither, and for both. */
function handlerLog({ sessions, harness, log, redact }: HandlerOptions): LogStore {
  if (sessions !== undefined && redact !== undefined)
    throw new HarnessError(
      'invalid_options',
      '`redact` of `createHandlers` is for a harness: give `use` to the sessions.',
    )
  if (sessions !== undefined && harness === undefined && log === undefined) return sessions.log
  if (sessions === undefined && harness !== undefined && log !== undefined) return log
  throw new HarnessError(
    'invalid_options',
    'Expected `createHandlers` to be given `sessions`, or `harness` and `log`, and not both.',
  )
}

/** The sessions of the options, or those of the harness, which are loaded with the first request. */
async function handlerSessions({ sessions, harness, log, responses, redact }: HandlerOptions): Promise<ServedSessions> {
  if (sessions !== undefined) return sessions
  const { Sessions } = await import('#session/index.js')
  const models = Object.entries(responses?.models ?? {})
  const modes = Object.fromEntries(
    models.flatMap(([name, served]) => (typeof served === 'string' ? [] : [[name, served]])),
  )
  const defaultMode = Object.hasOwn(modes, 'default') ? 'harness' : 'default'
  return new Sessions({
    log,
    use: redact === undefined ? [] : [{ name: 'handlers', redact }],
    modes: { ...modes, ...(harness !== undefined && { [defaultMode]: harness }) },
    defaultMode,
  })
}
