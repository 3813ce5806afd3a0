import { isAbsolute, resolve } from 'node:path'
import type {
  AgentContext,
  InitializeRequest,
  InitializeResponse,
  ListSessionsResponse,
  McpServer,
  SessionConfigOption,
  SessionModeState,
} from '@agentclientprotocol/sdk'
import type { Extension } from '../index.js'
import type { ThreadItem } from '../session/index.js'
import { ownVersion } from '../util/platform/own-package.js'
import { AcpSession } from './acp-session.js'
import { editorsFiles } from './client-files.js'
import { invalidParams } from './failures.js'
import type { AcpOptions, AgentInfo } from './options.js'
import type { ServedChat, ServedSessions, ServedThreads } from './served.js'
import { sourcesOf } from './servers.js'
import { oneLine } from './shown-call.js'

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
  readonly #sessions: ServedSessions
  readonly #threads: ServedThreads
  readonly #options: AcpOptions
  readonly #open = new Map<string, AcpSession>()
  #client: InitializeRequest['clientCapabilities'] = {}
  #isClosed = false

  constructor(sessions: ServedSessions, options: AcpOptions) {
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
    const takes = (kind: 'image' | 'audio'): boolean => inputs?.includes(kind) ?? false
    return {
      protocolVersion: VERSION,
      agentInfo: { name, version, ...(title !== undefined && { title }) },
      agentCapabilities: {
        loadSession: outlives,
        promptCapabilities: { image: takes('image'), audio: takes('audio'), embeddedContext: true },
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

  /** `replays`: the conversation so far is told before this resolves. */
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
        return { sessions: found.map(infoOf), nextCursor: found.at(-1)?.cursor ?? null }
      }
      found.push(item)
    }
    return { sessions: found.map(infoOf) }
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
      ...{ id: MODEL, name: 'Model', category: 'model', type: 'select', currentValue: current },
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
    chat: ServedChat,
    {
      root,
      request,
      client,
      replays,
    }: {
      readonly root: string
      readonly request: SessionRequest
      readonly client: AgentContext
      readonly replays: boolean
    },
  ): Promise<AcpSession> {
    const { elicitation, session: shows } = this.#client ?? {}
    const { sources, warnings } = await sourcesOf(request.mcpServers ?? [], root)
    const files = this.#options.useClientFiles === true ? await this.#filesOf(chat.threadId, root, client) : null
    chat.provide({ root, mcpServers: sources, ...(files !== null && { use: [files] }) })
    const isShown = (feature: unknown): boolean => feature !== undefined && feature !== null
    const features = { forms: isShown(elicitation?.form), notices: isShown(shows?.notices) }
    const session = await AcpSession.open({
      ...{ sessions: this.#sessions, chat, client, features, options: this.#options, root, replays },
      servers: sources,
    })
    this.#open.set(chat.threadId, session)
    for (const title of warnings)
      if (features.notices) await session.tell({ sessionUpdate: 'notice', severity: 'warning', title })
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

function infoOf({
  threadId,
  metadata,
  title,
  firstMessage,
  updatedAt,
}: ThreadItem): ListSessionsResponse['sessions'][number] {
  const shown = oneLine(title === '' ? firstMessage : title)
  return {
    sessionId: threadId,
    cwd: typeof metadata['cwd'] === 'string' ? metadata['cwd'] : '',
    updatedAt,
    ...(shown !== '' && { title: shown }),
  }
}
