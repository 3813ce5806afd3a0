import type { McpConnection, McpEndpoint, McpSdk, ConnectionSetup } from '../sdk/connection.js'
import { outcomeOfResult } from './result-content.js'
import { callFailure, isUnauthorized } from './call-failure.js'
import type { CallFailure } from './call-failure.js'
import { OpenToolCalls } from './open-calls.js'
import { INSTRUCTIONS, Pins } from './pins.js'
import type { Pinned } from './pins.js'
import { serverPrompts } from './prompts.js'
import type { McpPrompts } from './prompts.js'
import { serverResources } from './resources.js'
import type { McpResources } from './resources.js'
import { serverAsks } from './server-asks.js'
import type { ServerSettings } from './server-options.js'
import { jsonDigest, listTools, mcpSource, mcpToolSpec, resultProblem } from './tool-list.js'
import type { McpTool } from './tool-list.js'
import { HarnessError, messageOf } from '#contracts/errors.js'
import type { ToolSourceHost } from '#core/tools/tool-source.js'
import type { ToolContext, ToolOutcome, ToolSource, ToolSpec } from '#core/tools/tool-spec.js'
import { abortable } from '#util/abort.js'
import type { JsonObject } from '#util/json.js'
import { withoutSecrets } from '#util/secrets.js'
import { withoutTerminalCodes } from '#util/platform/terminal.js'

/**
 * An MCP server whose tools a harness can offer (`mcpServers`). Connects when first used; serves any number of runs, also of
 * several harnesses, over one connection.
 */
export interface McpServer extends ToolSource, AsyncDisposable {
  /** The server's resources. */
  readonly resources: McpResources
  /** The server's prompt templates. */
  readonly prompts: McpPrompts
  /** The server's words on itself for a model; may be empty. Text of the server, not to be trusted more than it is. */
  instructions(): Promise<string>
  /**
   * Digests of the definitions of all wanted tools, as they are now, by the server's names, and of the instructions if they are
   * used: for `pins` and `pin`.
   */
  digests(): Promise<Readonly<Record<string, string>>>
  /** Trusts these definitions from now on. */
  pin(digests: Readonly<Record<string, string>>): void
  /**
   * Completes an authorization in which a person was sent to a page; `callback` has the parameters of the address to which
   * they returned. Compare its `state` with yours first.
   */
  finishAuth(callback: URLSearchParams): Promise<void>
}

/** A server at an endpoint. Does no I/O. */
export function serverAt(
  endpoint: McpEndpoint,
  settings: ServerSettings,
  load: () => Promise<McpSdk> = async () => (await import('../sdk/load-sdk.js')).loadSdk(),
): McpServer {
  let loaded: Promise<McpSdk> | null = null
  // One instance for the life of the server: it knows how a rejected connection wants to be authorized.
  const loadOnce = (): Promise<McpSdk> => {
    loaded ??= load().catch((error: unknown) => {
      loaded = null
      throw error
    })
    return loaded
  }
  return new ServerAtEndpoint(endpoint, settings, loadOnce)
}

class ServerAtEndpoint implements McpServer {
  readonly id: string
  readonly required: boolean
  readonly resources: McpResources
  readonly prompts: McpPrompts
  readonly #endpoint: McpEndpoint
  readonly #settings: ServerSettings
  readonly #loadSdk: () => Promise<McpSdk>
  readonly #session: McpSession
  readonly #calls = new OpenToolCalls()
  readonly #hosts = new Set<ToolSourceHost>()
  readonly #pins: Pins
  /** All selected tools, and the instructions if they are used. */
  #listed: readonly Pinned[] = []
  /** Those that the pins admit. */
  #offered: readonly Pinned[] = []
  #specs: readonly ToolSpec[] | null = null
  /** The tools may have changed since they were listed. */
  #stale = true
  #refreshing: Promise<readonly ToolSpec[]> | null = null
  /** How many wait for the connection. */
  #waiting = 0

  constructor(endpoint: McpEndpoint, settings: ServerSettings, load: () => Promise<McpSdk>) {
    this.id = settings.id
    this.required = settings.required
    this.#endpoint = endpoint
    this.#settings = settings
    this.#loadSdk = load
    this.#pins = new Pins(settings.pins, settings.changedTools)
    this.#session = new McpSession({
      serverId: settings.id,
      loadSdk: load,
      endpoint,
      connectMs: settings.connectMs,
      asks: serverAsks(settings, this.#hosts, this.#calls),
      onToolsChanged: () => (this.#stale = true),
      onOpened: () => (this.#stale = true),
    })
    const use = { settings, request: this.#request.bind(this) }
    this.resources = serverResources(use)
    this.prompts = serverPrompts(use)
  }

  tools(host: ToolSourceHost, signal: AbortSignal): Promise<readonly ToolSpec[]> {
    this.#hosts.add(host)
    return this.#wanted(() => this.#current(), signal)
  }

  async instructions(): Promise<string> {
    return (await this.#wanted(() => this.#session.connection())).instructions
  }

  async digests(): Promise<Readonly<Record<string, string>>> {
    await this.#wanted(() => this.#current())
    return Object.fromEntries(this.#listed.map(({ name, digest }) => [name, digest]))
  }

  pin(digests: Readonly<Record<string, string>>): void {
    this.#pins.pin(digests)
    this.#stale = true
  }

  async finishAuth(callback: URLSearchParams): Promise<void> {
    const endpoint = this.#endpoint
    if (endpoint.kind === 'stdio') {
      throw new HarnessError('invalid_options', `MCP server \`${this.id}\` is a process: it has no authorization.`)
    }
    const sdk = await this.#loadSdk()
    try {
      await sdk.finishAuth(endpoint, callback)
    } catch (error) {
      const message = `MCP server \`${this.id}\` could not be authorized: ${messageOf(error)}`
      throw new HarnessError('error', message, { cause: error, retryable: false })
    }
    await this.#session.close()
  }

  async close(host?: ToolSourceHost): Promise<void> {
    if (host === undefined) this.#hosts.clear()
    else this.#hosts.delete(host)
    if (this.#hosts.size > 0) return
    await this.#session.close()
    await this.#refreshing?.catch(() => undefined)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Work that wants the connection; an opening ends with the last that waits for it. */
  async #wanted<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    this.#waiting += 1
    try {
      const result = work()
      // What nobody waits for any longer may fail.
      result.catch(() => undefined)
      return await (signal === undefined ? result : abortable(result, signal))
    } finally {
      this.#waiting -= 1
      if (this.#waiting === 0 && this.#session.endOpening()) this.#refreshing = null
    }
  }

  #current(): Promise<readonly ToolSpec[]> {
    if (this.#specs !== null && !this.#stale) return Promise.resolve(this.#specs)
    if (this.#refreshing !== null) return this.#refreshing
    const refreshing = this.#refresh().finally(() => {
      if (this.#refreshing === refreshing) this.#refreshing = null
    })
    this.#refreshing = refreshing
    return refreshing
  }

  async #refresh(): Promise<readonly ToolSpec[]> {
    const connection = await this.#session.connection()
    // A change that is reported while the list is read makes it stale again.
    this.#stale = false
    try {
      const tools = await this.#list(connection)
      const listed = [...tools, ...this.#pinnedInstructions(connection)]
      const admitted = this.#pins.admitted(listed, (message) => this.#warn(message))
      this.#listed = listed
      if (this.#specs !== null && areSame(admitted, this.#offered)) return this.#specs
      this.#offered = admitted
      this.#specs = this.#specsOf(tools, connection)
      return this.#specs
    } catch (error) {
      this.#stale = true
      throw this.#listFailure(error, connection)
    }
  }

  async #list(connection: McpConnection): Promise<readonly McpTool[]> {
    const { id, toolPrefix: prefix, includeTools: include, excludeTools: exclude, connectMs, offer } = this.#settings
    if (!offer.includes('tools')) return []
    const options = { timeoutMs: connectMs, warn: (message: string) => this.#warn(message) }
    return listTools(connection, id, { filter: { prefix, include, exclude }, options })
  }

  #listFailure(error: unknown, connection: McpConnection): HarnessError {
    if (error instanceof HarnessError) return error
    const failure = this.#failure(error, this.#settings.connectMs)
    if (failure.lost) this.#session.drop(connection)
    const message = `MCP server \`${this.id}\` could not list its tools: ${failure.message}`
    return new HarnessError('error', message, { cause: error, retryable: true })
  }

  #pinnedInstructions({ instructions }: McpConnection): readonly Pinned[] {
    if (!this.#settings.useInstructions || instructions === '') return []
    return [{ name: INSTRUCTIONS, digest: jsonDigest(instructions) }]
  }

  /** Of the tools and instructions that are offered. */
  #specsOf(all: readonly McpTool[], { offers, instructions }: McpConnection): readonly ToolSpec[] {
    const { offer } = this.#settings
    const tools = all.filter((tool) => this.#offered.includes(tool))
    const specs = [
      ...tools.map((tool) => mcpToolSpec(tool, this.#settings, (args, context) => this.#call(tool, args, context))),
      ...(offers.resources && offer.includes('resources') ? this.resources.asTools() : []),
      ...(offers.prompts && offer.includes('prompts') ? this.prompts.asTools() : []),
    ]
    const [first, ...others] = specs
    if (first === undefined || !this.#offered.some(({ name }) => name === INSTRUCTIONS)) return specs
    return [{ ...first, instructions: instructions.slice(0, LONGEST_INSTRUCTIONS) }, ...others]
  }

  async #call(tool: McpTool, args: JsonObject, context: ToolContext): Promise<ToolOutcome> {
    const metadata = mcpSource(this.id, tool.name)
    const sent = await this.#sent(context, async (connection, signal) => {
      // Over a connection that is open: a server that was started again may be another.
      if (!(await this.#isAdmitted(tool))) return CHANGED
      return connection.callTool(tool.definition, args, {
        signal,
        timeoutMs: this.#settings.callMs,
        onProgress: ({ message, ...progress }) =>
          context.progress({ ...progress, ...(message !== undefined && { message: withoutTerminalCodes(message) }) }),
      })
    })
    if (sent.ok && sent.result === CHANGED) return this.#failed(tool, CHANGED.problem)
    if (!sent.ok) return this.#failed(tool, sent.problem)
    const note = await resultProblem(tool, sent.result)
    return outcomeOfResult(sent.result, metadata, this.#settings.retryErrors, note)
  }

  /** False if the definition is not the pinned one, or cannot be compared with it. */
  async #isAdmitted(tool: McpTool): Promise<boolean> {
    if (this.#settings.changedTools !== 'refuse') return true
    if (this.#stale) await this.#current().catch(() => undefined)
    const now = this.#listed.find(({ name }) => name === tool.name) ?? tool
    return !this.#stale && this.#pins.admits(now)
  }

  /** Sends a call; again over a new connection if the server cannot have seen it. */
  async #sent(context: ToolContext, send: Send, isLastAttempt = false): Promise<Sent> {
    let connection: McpConnection
    try {
      connection = await this.#wanted(() => this.#session.connection(), context.signal)
    } catch (error) {
      context.signal.throwIfAborted()
      return { ok: false, problem: `The server could not be reached: ${messageOf(error)}` }
    }
    const sent = await this.#calls.during<Sent & { unseen?: boolean }>(context, async (signal) => {
      try {
        return { ok: true, result: await send(connection, signal) }
      } catch (error) {
        const failure = this.#failure(error, this.#settings.callMs)
        // A request aborted here says nothing about the connection.
        if (failure.lost && !signal.aborted) this.#session.drop(connection)
        return { ok: false, problem: failure.message, unseen: failure.unseen }
      }
    })
    context.signal.throwIfAborted()
    return sent.unseen === true && !isLastAttempt ? this.#sent(context, send, true) : sent
  }

  /** A request of the host, not of a run; again over a new connection if the server cannot have seen it. */
  async #request<T>(
    work: (connection: McpConnection, timeoutMs: number) => Promise<T>,
    isLastAttempt = false,
  ): Promise<T> {
    const connection = await this.#wanted(() => this.#session.connection())
    try {
      return await work(connection, this.#settings.callMs)
    } catch (error) {
      if (error instanceof HarnessError) throw error
      const failure = this.#failure(error, this.#settings.callMs)
      if (failure.lost) this.#session.drop(connection)
      if (failure.unseen && !isLastAttempt) return this.#request(work, true)
      throw new HarnessError('error', `MCP server \`${this.id}\`: ${failure.message}`, { cause: error })
    }
  }

  #failure(error: unknown, timeoutMs: number): CallFailure {
    return callFailure(error, { kind: this.#endpoint.kind, timeoutMs, lastProblem: this.#session.lastProblem })
  }

  #failed({ name }: McpTool, problem: string): ToolOutcome {
    return { kind: 'failed', errorType: 'MCPError', content: problem, retry: false, metadata: mcpSource(this.id, name) }
  }

  #warn(message: string): void {
    for (const host of this.#hosts) host.warn(`MCP server \`${this.id}\`: ${message}`)
  }
}

const CHANGED = { problem: 'Its definition has changed: it was not executed.' }

type Send = (connection: McpConnection, signal: AbortSignal) => Promise<unknown>

type Sent = { readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly problem: string }

/** Most characters of a server's instructions that are added to the system prompt. */
const LONGEST_INSTRUCTIONS = 4_000

/** The order of a list says nothing. */
function areSame(left: readonly Pinned[], right: readonly Pinned[]): boolean {
  const digests = new Map(right.map(({ name, digest }) => [name, digest]))
  return left.length === right.length && left.every(({ name, digest }) => digests.get(name) === digest)
}

/** How a session opens connections. */
interface SessionOptions extends Omit<ConnectionSetup, 'onClosed' | 'onStderr' | 'onProblem' | 'signal'> {
  readonly serverId: string
  readonly loadSdk: () => Promise<McpSdk>
  /** Called for every connection that is opened; its tools may differ from those before. */
  readonly onOpened: () => void
}

/**
 * At most one connection to a server at a time, shared by all users: opened when first needed, and reopened after it was
 * lost. After a failure the next attempt waits, from half a second up to half a minute; requests in the meantime get the
 * same error.
 */
class McpSession {
  readonly #options: SessionOptions
  #connection: McpConnection | null = null
  #opening: Promise<McpConnection> | null = null
  #openingEnd = new AbortController()
  #failures = 0
  #failed: { readonly error: HarnessError; readonly until: number } | null = null
  #lastStderr = ''
  #lastProblem = ''

  constructor(options: SessionOptions) {
    this.#options = options
  }

  /** The connection, opened when there is none. Rejects with a `HarnessError` that names the server. */
  connection(): Promise<McpConnection> {
    if (this.#connection !== null) return Promise.resolve(this.#connection)
    if (this.#opening !== null) {
      if (!this.#openingEnd.signal.aborted) return this.#opening
      return this.#opening.then(undefined, () => undefined).then(() => this.connection())
    }
    if (this.#failed !== null && Date.now() < this.#failed.until) return Promise.reject(this.#failed.error)
    this.#openingEnd = new AbortController()
    this.#opening = this.#open(this.#openingEnd.signal).finally(() => (this.#opening = null))
    return this.#opening
  }

  /** Ends a connection that is being opened: nobody waits for it. False if there is none. */
  endOpening(): boolean {
    this.#openingEnd.abort()
    return this.#opening !== null
  }

  /** Gives up a connection that no longer works: the next use opens another. */
  drop(connection: McpConnection): void {
    if (this.#connection === connection) this.#connection = null
    void connection.close()
  }

  /** Recent output that was not a message, for errors; may be empty. */
  get lastProblem(): string {
    return this.#lastProblem
  }

  /** Ends the connection, also one that is being opened. Never rejects. */
  async close(): Promise<void> {
    this.endOpening()
    await this.#opening?.catch(() => undefined)
    const connection = this.#connection
    this.#connection = null
    this.#failed = null
    await connection?.close()
  }

  async #open(signal: AbortSignal): Promise<McpConnection> {
    this.#lastStderr = ''
    this.#lastProblem = ''
    try {
      const sdk = await this.#options.loadSdk()
      let isClosed = false
      const hasClosed = (): boolean => isClosed
      let opened: McpConnection | null = null
      const connection = await sdk.open({
        ...this.#options,
        signal,
        onClosed: () => {
          isClosed = true
          // The connection has been replaced.
          if (this.#connection === opened) this.#connection = null
        },
        onStderr: (text) => (this.#lastStderr = withoutSecrets(this.#lastStderr + text).slice(-LONGEST_STDERR)),
        onProblem: (problem) => (this.#lastProblem = withoutSecrets(withoutTerminalCodes(problem)).slice(0, 200)),
      })
      if (hasClosed()) throw new Error('It exited immediately.')
      opened = connection
      this.#connection = connection
      this.#failures = 0
      this.#failed = null
      this.#options.onOpened()
      return connection
    } catch (error) {
      const failure = error instanceof HarnessError ? error : this.#unreachable(error)
      throw signal.aborted ? failure : this.#counted(failure)
    }
  }

  /** The next attempt waits. */
  #counted(failure: HarnessError): HarnessError {
    this.#failures += 1
    const waitMs = Math.min(LONGEST_WAIT_MS, SHORTEST_WAIT_MS * 2 ** (this.#failures - 1))
    this.#failed = { error: failure, until: Date.now() + waitMs }
    return failure
  }

  #unreachable(error: unknown): HarnessError {
    const name = `MCP server \`${this.#options.serverId}\``
    if (isUnauthorized(error)) {
      const message = `${name} requires authorization: pass \`auth\`, and call \`finishAuth\` with the parameters of the callback.`
      return new HarnessError('error', message, { cause: error, retryable: false })
    }
    const wrote = withoutTerminalCodes(this.#lastStderr).trim()
    const output = wrote === '' ? '' : ` It wrote: ${wrote}`
    const message = `${name} could not be reached: ${messageOf(error)}${output}`
    return new HarnessError('error', message, { cause: error, retryable: true })
  }
}

/** Characters of a process's last output that an error shows. */
const LONGEST_STDERR = 500
const SHORTEST_WAIT_MS = 500
const LONGEST_WAIT_MS = 30_000
