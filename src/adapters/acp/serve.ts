import type { AcpSessionSetup } from './acp-session.js'
import { isAbsolute, resolve } from 'node:path'
import { Readable, Writable } from 'node:stream'
import type {
  AgentApp,
  AgentContext,
  InitializeRequest,
  InitializeResponse,
  ListSessionsResponse,
  McpServer,
  SessionConfigOption,
  SessionModeState,
} from '@agentclientprotocol/sdk'
import { messageOf } from '#contracts/errors.js'
import type { Extension } from '#core/extension/extension.js'
import type * as mcpModule from '../mcp/index.js'
import type { McpServer as Source } from '../mcp/client/mcp-server.js'
import type { ThreadItem } from '#session/sessions.js'
import { isObject } from '#util/json.js'
import { ownVersion } from '#util/platform/packages.js'
import { takeOutput } from '#util/platform/standard-output.js'
import { AcpSession } from './acp-session.js'
import { editorsFiles } from './client-files.js'
import { checkSessions, parseAcpOptions } from './options.js'
import type { AcpOptions, AgentInfo, AcpChat, AcpSessions, ServedThreads } from './options.js'
import { AcpFailure, acpSdk, internalError, invalidParams, invalidRequest } from './protocol.js'
import type { AcpSdk } from './protocol.js'
import { oneLine } from './shown-call.js'

/** How long a program may take to end by itself when its editor is gone, in ms. */
const PATIENCE_MS = 1500

/** An agent that an editor is connected to. */
export interface AcpServing extends AsyncDisposable {
  /** Resolves when serving has ended: after `close`, or when the editor is gone. Never rejects. */
  readonly closed: Promise<void>
  /** Stops serving, as when the editor is gone. */
  close(): Promise<void>
}

/**
 * Makes this process an agent for editors that speak the Agent Client Protocol, version 1: a session of the editor is a thread, with
 * its folder as the workspace of its runs. When the editor is gone, prompts under way are cancelled, and a process that serves over
 * standard input ends within 2 s. The caller closes the sessions and the harnesses.
 *
 * Needs the package `@agentclientprotocol/sdk`. Rejects with `invalid_options` or `missing_dependency`.
 *
 * @example
 * await serveAcp(new Sessions({ log: fileLog('.sessions'), harness: new Harness({ model: 'anthropic:claude-sonnet-5', root: '.' }) }))
 */
export async function serveAcp(sessions: AcpSessions, options: AcpOptions = {}): Promise<AcpServing> {
  checkSessions(sessions)
  const parsed = parseAcpOptions(options)
  const { input = process.stdin, output } = parsed
  const sdk = await acpSdk()
  const agent = new AcpAgent(sessions, parsed)
  const { protocol, giveBack } =
    output === undefined ? takeOutput() : { protocol: output, giveBack: (): void => undefined }
  const stream = sdk.ndJsonStream(Writable.toWeb(protocol) as WritableStream<Uint8Array>, Readable.toWeb(input))
  const connection = agentApp(sdk, agent).connect(stream)
  const closed = connection.closed.then(async () => {
    await agent.close()
    protocol.end()
    giveBack()
    // A timer or a socket of the program must not keep it alive without its editor.
    if (parsed.input === undefined) setTimeout(() => process.exit(0), PATIENCE_MS).unref()
  })
  const close = async (): Promise<void> => {
    await agent.close()
    connection.close()
    await closed
  }
  return { closed, close, [Symbol.asyncDispose]: close }
}

/** The methods of the protocol. */
function agentApp(sdk: AcpSdk, agent: AcpAgent): AgentApp {
  const answering = protocolErrors(sdk)
  return sdk
    .agent({ name: 'thinharness' })
    .onRequest(
      'initialize',
      answering(({ params }) => agent.initialize(params)),
    )
    .onRequest('authenticate', () => ({}))
    .onRequest(
      'session/new',
      answering(({ params, client }) => agent.begin(params, client)),
    )
    .onRequest(
      'session/load',
      answering(({ params, client }) => agent.load(params, { client, replays: true })),
    )
    .onRequest(
      'session/resume',
      answering(({ params, client }) => agent.load(params, { client, replays: false })),
    )
    .onRequest(
      'session/list',
      answering(({ params }) => agent.list(params.cwd ?? null, params.cursor ?? null)),
    )
    .onRequest(
      'session/close',
      answering(async ({ params }) => agent.forget(params.sessionId)),
    )
    .onRequest(
      'session/set_mode',
      answering(async ({ params }) => agent.setMode(params.sessionId, params.modeId)),
    )
    .onRequest(
      'session/set_config_option',
      answering(async ({ params }) => ({
        configOptions: await agent.setOption(params.sessionId, params.configId, params.value),
      })),
    )
    .onRequest(
      'session/prompt',
      answering(({ params, signal }) => {
        const session = agent.session(params.sessionId)
        if (!session.isPrompted) return session.prompt(params.prompt, signal)
        if (isSteering(params._meta)) return session.steer(params.prompt, signal)
        throw invalidRequest('A prompt of this session is under way: cancel it, or steer it.')
      }),
    )
    .onRequest(
      '_thinharness/recover',
      readSessionId,
      answering(({ params, signal }) => agent.session(params.sessionId).recover(signal)),
    )
    .onNotification('session/cancel', ({ params }) => agent.cancel(params.sessionId))
}

/** Failures as errors of the protocol: those of the program are in no answer. */
function protocolErrors(sdk: AcpSdk) {
  return <Context, Response>(handler: (context: Context) => Response | Promise<Response>) =>
    async (context: Context): Promise<Response> => {
      try {
        return await handler(context)
      } catch (error) {
        if (error instanceof sdk.RequestError) throw error
        const failure = error instanceof AcpFailure ? error : internalError('Something went wrong.', errorCode(error))
        throw new sdk.RequestError(failure.code, failure.message, failure.data)
      }
    }
}

function errorCode(error: unknown): { readonly code: string } | undefined {
  return isObject(error) && typeof error['code'] === 'string' ? { code: error['code'] } : undefined
}

function isSteering(meta: unknown): boolean {
  const own = isObject(meta) ? meta['thinharness'] : undefined
  return isObject(own) && own['steer'] === true
}

function readSessionId(params: unknown): { readonly sessionId: string } {
  const sessionId = isObject(params) ? params['sessionId'] : undefined
  if (typeof sessionId !== 'string') throw invalidParams('Expected `sessionId` to be a string.')
  return { sessionId }
}

/** Version 1 of the protocol. */
const VERSION = 1
/** Sessions of one page of a list. */
const PAGE = 50
const MODEL = 'model'

/** What an editor asks a session to be. */
export interface SessionRequest {
  readonly cwd: string
  readonly mcpServers?: readonly McpServer[] | undefined
}

/** Modes and options of a session, as the editor shows them. */
export interface SessionChoices {
  readonly modes?: SessionModeState
  readonly configOptions?: SessionConfigOption[]
}

/** The agent of one connection: its sessions by their ids. */
export class AcpAgent {
  readonly #sessions: AcpSessions
  readonly #threads: ServedThreads
  readonly #options: AcpOptions
  readonly #open = new Map<string, AcpSession>()
  #client: InitializeRequest['clientCapabilities'] = {}
  #isClosed = false

  constructor(sessions: AcpSessions, options: AcpOptions) {
    const { resourceId } = options
    this.#sessions = sessions
    this.#threads = resourceId === undefined ? sessions : sessions.for({ resourceId })
    this.#options = options
  }

  async initialize({ clientCapabilities = {} }: InitializeRequest): Promise<InitializeResponse> {
    this.#client = clientCapabilities
    const { name, title, version }: AgentInfo = this.#options.agent ?? { name: 'thinharness', version: ownVersion() }
    const { outlives } = this.#sessions.log
    const inputs = (await this.#sessions.capabilities().catch(() => null))?.inputs
    const acceptsInput = (kind: 'image' | 'audio'): boolean => inputs?.includes(kind) ?? false
    return {
      protocolVersion: VERSION,
      agentInfo: { name, version, ...(title !== undefined && { title }) },
      agentCapabilities: {
        loadSession: outlives,
        promptCapabilities: { image: acceptsInput('image'), audio: acceptsInput('audio'), embeddedContext: true },
        mcpCapabilities: { http: true, sse: true },
        ...(outlives && { sessionCapabilities: { list: {}, resume: {}, close: {} } }),
      },
    }
  }

  async begin(request: SessionRequest, client: AgentContext): Promise<{ readonly sessionId: string } & SessionChoices> {
    const root = await this.#rootOf(request)
    const chat = await this.#threads.create({ metadata: { cwd: root } })
    const session = await this.#opened(chat, { root, request, client, replays: false })
    return { sessionId: chat.threadId, ...this.choicesOf(session) }
  }

  /** `replays`: the conversation so far is sent before this resolves. */
  async load(
    { sessionId, ...request }: SessionRequest & { readonly sessionId: string },
    { client, replays }: { readonly client: AgentContext; readonly replays: boolean },
  ): Promise<SessionChoices> {
    const root = await this.#rootOf(request)
    const known = await this.#sessions.log.inspect({ kind: 'thread', id: sessionId })
    if (known === null) throw unknownSession(sessionId)
    const chat = await this.#threads.open(sessionId).catch((error: unknown) => {
      throw isNotFound(error) ? unknownSession(sessionId) : error
    })
    await this.#open.get(sessionId)?.close()
    const session = await this.#opened(chat, { root, request, client, replays })
    if (this.#options.askOnLoad === true) void session.askNow().catch(() => undefined)
    return this.choicesOf(session)
  }

  /** The sessions of a folder, newest first. */
  async list(cwd: string | null, cursor: string | null): Promise<ListSessionsResponse> {
    if (cwd !== null) checkRoot(cwd)
    const root = cwd === null ? null : resolve(cwd)
    const found: ThreadItem[] = []
    for await (const item of this.#threads.list({ before: this.#cursor(cursor) })) {
      const of = item.metadata['cwd']
      if (typeof of !== 'string' || (root !== null && of !== root)) continue
      if (found.length === PAGE) {
        return { sessions: found.map(sessionInfo), nextCursor: found.at(-1)?.cursor ?? null }
      }
      found.push(item)
    }
    return { sessions: found.map(sessionInfo) }
  }

  session(sessionId: string): AcpSession {
    const session = this.#open.get(sessionId)
    if (session === undefined) throw unknownSession(sessionId)
    return session
  }

  async setMode(sessionId: string, modeId: string): Promise<void> {
    const { chat } = this.session(sessionId)
    if (!this.#sessions.modes.includes(modeId))
      throw invalidParams(`There is no mode \`${modeId}\`.`, { modes: this.#sessions.modes })
    await chat.setMode(modeId)
  }

  async setOption(sessionId: string, configId: string, value: unknown): Promise<SessionConfigOption[]> {
    const session = this.session(sessionId)
    const { models = [] } = this.#options
    if (configId !== MODEL || models.length === 0) throw invalidParams(`There is no option \`${configId}\`.`)
    const model = models.find((each) => each === value)
    if (model === undefined) throw invalidParams(`There is no model \`${String(value)}\`.`, { models })
    await session.chat.setModel(model)
    return this.choicesOf(session).configOptions ?? []
  }

  choicesOf({ chat }: AcpSession): SessionChoices {
    const { modes } = this.#sessions
    const { models = [] } = this.#options
    const { mode: currentModeId, models: chosen } = chat.snapshot.thread
    const availableModes = modes.map((id) => ({ id, name: id.charAt(0).toUpperCase() + id.slice(1) }))
    const current = chosen[currentModeId] ?? models[0] ?? ''
    const known = models.includes(current) || current === '' ? models : [current, ...models]
    const model: SessionConfigOption = {
      id: MODEL,
      name: 'Model',
      category: 'model',
      type: 'select',
      currentValue: current,
      options: known.map((value) => ({ value, name: value })),
    }
    return {
      ...(modes.length > 1 && { modes: { currentModeId, availableModes } }),
      ...(models.length > 0 && { configOptions: [model] }),
    }
  }

  /** Nothing if there is no such session, or no prompt under way. */
  async cancel(sessionId: string): Promise<void> {
    await this.#open.get(sessionId)?.cancel()
  }

  async forget(sessionId: string): Promise<void> {
    const session = this.session(sessionId)
    this.#open.delete(sessionId)
    await session.close()
    await session.chat.release().catch(() => undefined)
  }

  /** The editor is gone: prompts that nobody else follows are cancelled, and the claims of its threads are given up. */
  async close(): Promise<void> {
    this.#isClosed = true
    const all = [...this.#open.values()]
    this.#open.clear()
    await Promise.allSettled(
      all.map(async (session) => {
        await session.leave()
        await session.chat.release()
      }),
    )
  }

  async #opened(
    chat: AcpChat,
    setup: Pick<AcpSessionSetup, 'root' | 'client' | 'replays'> & { readonly request: SessionRequest },
  ): Promise<AcpSession> {
    const { root, request, client, replays } = setup
    const { elicitation, session: shows } = this.#client ?? {}
    const { sources, warnings } = await editorSources(request.mcpServers ?? [], root)
    const files = this.#options.useClientFiles === true ? await this.#filesOf(chat.threadId, root, client) : null
    chat.provide({ root, mcpServers: sources, ...(files !== null && { use: [files] }) })
    const isShown = (feature: unknown): boolean => feature !== undefined && feature !== null
    const features = { forms: isShown(elicitation?.form), notices: isShown(shows?.notices) }
    const session = await AcpSession.open({
      sessions: this.#sessions,
      chat,
      client,
      features,
      options: this.#options,
      root,
      replays,
      servers: sources,
    })
    this.#open.set(chat.threadId, session)
    for (const title of warnings)
      if (features.notices) await session.send({ sessionUpdate: 'notice', severity: 'warning', title })
    return session
  }

  #filesOf(sessionId: string, root: string, client: AgentContext): Promise<Extension | null> {
    const isConnected = (): boolean => !this.#isClosed
    return editorsFiles({ sessionId, root, client, capabilities: this.#client ?? {}, isConnected })
  }

  async #rootOf({ cwd }: SessionRequest): Promise<string> {
    checkRoot(cwd)
    const root = resolve(cwd)
    const { allowRoot } = this.#options
    if (allowRoot !== undefined && !(await allowRoot(root)))
      throw invalidParams(`The folder \`${root}\` may not be the workspace of a session.`)
    return root
  }

  #cursor(cursor: string | null): string | undefined {
    if (cursor === null) return undefined
    if (!cursor.includes('/')) throw invalidParams('Expected `cursor` to be one of an earlier page.')
    return cursor
  }
}

function checkRoot(cwd: string): void {
  if (!isAbsolute(cwd)) throw invalidParams(`Expected \`cwd\` to be an absolute path, got \`${oneLine(cwd)}\`.`)
}

function unknownSession(sessionId: string): Error {
  return invalidParams(`There is no session \`${oneLine(sessionId)}\`.`, { sessionId })
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'thread_not_found'
}

function sessionInfo(item: ThreadItem): ListSessionsResponse['sessions'][number] {
  const { threadId, metadata, title, firstMessage, updatedAt } = item
  const shown = oneLine(title === '' ? firstMessage : title)
  return {
    sessionId: threadId,
    cwd: typeof metadata['cwd'] === 'string' ? metadata['cwd'] : '',
    updatedAt,
    ...(shown !== '' && { title: shown }),
  }
}

export interface EditorServers {
  readonly sources: readonly Source[]
  /** Why some of the servers are missing. */
  readonly warnings: readonly string[]
}

/** The editor's MCP servers as sources of tools. Processes of this machine run in the workspace. */
export async function editorSources(servers: readonly McpServer[], root: string): Promise<EditorServers> {
  if (servers.length === 0) return { sources: [], warnings: [] }
  const make = await import('../mcp/index.js')
  const sources: Source[] = []
  const warnings: string[] = []
  for (const server of servers) {
    try {
      sources.push(editorSource(server, root, make))
    } catch (error) {
      warnings.push(`The MCP server \`${server.name}\` cannot be used: ${messageOf(error)}`)
    }
  }
  return { sources, warnings }
}

function editorSource(server: McpServer, root: string, { mcpHttp, mcpSse, mcpStdio }: typeof mcpModule): Source {
  if ('command' in server) {
    const { name, command, args } = server
    const env = Object.fromEntries(server.env.map((variable) => [variable.name, variable.value]))
    return mcpStdio({ id: sourceId(name), command, args, env, cwd: root })
  }
  const headers = Object.fromEntries(server.headers.map((header) => [header.name, header.value]))
  const { name, url, type } = server
  return type === 'http' ? mcpHttp({ id: sourceId(name), url, headers }) : mcpSse({ id: sourceId(name), url, headers })
}

/** An id has no characters that names of tools cannot have. */
function sourceId(name: string): string {
  const id = name.replaceAll(/[^\w-]+/g, '_').slice(0, 32)
  return id === '' ? 'server' : id
}
