import type * as sdkModule from '@modelcontextprotocol/server'
import type * as stdioModule from '@modelcontextprotocol/server/stdio'
import { CLIENT_INFO, HINTS, LARGEST_MESSAGE } from '../sdk/connection.js'
import { runTool } from './run-tool.js'
import type { ServedHarness } from './run-tool.js'
import type {
  McpServerFactory,
  WebStandardStreamableHTTPServerTransport,
  CallToolResult,
  ListToolsResult,
  ServerContext,
} from '@modelcontextprotocol/server'
import { shownName } from '#contracts/entry.js'
import type { ContentPart } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import type { ToolAnnotations, ToolContext, ToolOutcome, ToolSpec } from '#core/tools/tool-spec.js'
import { tryTool } from '#harness/try-tool.js'
import { abortable } from '#util/abort.js'
import { isObject } from '#util/json.js'
import type { JsonInput, JsonObject, JsonValue } from '#util/json.js'
import { plainJson } from '#util/plain-json.js'
import { isMissing } from '#util/platform/packages.js'
import { takeOutput } from '#util/platform/standard-output.js'
import {
  either,
  filledString,
  having,
  integer,
  list,
  object,
  oneOf,
  optional,
  partial,
  secret,
  string,
} from '#util/validate.js'
import { didYouMean } from '#util/suggest.js'
import { createHash, timingSafeEqual, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'

/** Address and access rules of a harness that is served over streamable HTTP, at the path `/mcp`. */
export interface McpHttpTransport {
  /** Default 0: any free one. */
  readonly port?: number | undefined
  /** Default `127.0.0.1`. An address that other machines can reach requires a `token`. */
  readonly host?: string | undefined
  /** Clients must send `Authorization: Bearer <token>`. */
  readonly token?: string | undefined
  /** Host names that clients may use, in addition to those of this machine (against DNS rebinding). */
  readonly allowedHosts?: readonly string[] | undefined
}

/** A harness that is being served. */
export interface McpServing extends AsyncDisposable {
  /** Address for clients; null over stdio. */
  readonly url: string | null
  /** Resolves when serving has ended: after `close`, and over stdio when the client has disconnected. Never rejects. */
  readonly closed: Promise<void>
  /** Cancels the runs in progress and stops serving. */
  close(): Promise<void>
}

export interface ServeMcpOptions {
  /**
   * `stdio`: this process is the server. Its standard output belongs to the protocol; other output goes to standard error.
   */
  readonly transport: 'stdio' | McpHttpTransport
  /** Name of the server for clients. Default `thinharness`. */
  readonly name?: string | undefined
  /** Description of the tool `run`, for the model that calls it. Default: a general sentence. */
  readonly description?: string | undefined
  /**
   * Offered in addition to `run`, in the harness's workspace. They are called outside a run: hooks, policies and provenance do
   * not apply, and a call that needs an approval or asks a question fails.
   */
  readonly tools?: readonly ToolSpec[] | undefined
  /** Most concurrent runs; further ones are rejected. Default 8. */
  readonly maxRuns?: number | undefined
}

/**
 * Serves a harness to MCP clients of every revision: a tool `run`, which takes a prompt, reports progress and returns the
 * answer, and the chosen tools. A client that cancels a call cancels its run. The caller closes the harness.
 *
 * @example
 * await serveMcp(harness, { transport: 'stdio', description: 'Answers questions on our orders.' })
 */
export async function serveMcp(harness: ServedHarness, options: ServeMcpOptions): Promise<McpServing> {
  const { transport, name = 'thinharness', description = DESCRIPTION, tools = [], maxRuns = 8 } = parseOptions(options)
  const sdk = await serverSdk()
  const closing = new AbortController()
  const served = [runTool(harness, { description, maxRuns, signal: closing.signal }), ...tools]
  const { root } = harness
  const factory = offeredServer(sdk, { name, tools: served, root, closing: closing.signal })
  return transport === 'stdio' ? serveOverStdio(factory, closing) : serveHttp(sdk, factory, { transport, closing })
}

const DESCRIPTION = 'Gives a task to an agent, which works on it with its own tools and answers.'

const OPTIONS = object<ServeMcpOptions>({
  transport: either(
    oneOf('stdio'),
    partial<McpHttpTransport>({
      port: integer(0, 65_535),
      host: filledString,
      token: secret(filledString),
      allowedHosts: list(string),
    }),
  ),
  name: optional(filledString),
  description: optional(string),
  tools: optional(list(having<ToolSpec>('a tool, made by `defineTool`', 'call'), 'a list of tools')),
  maxRuns: optional(integer(1)),
})

function parseOptions(options: ServeMcpOptions): ServeMcpOptions {
  const given = parse(OPTIONS, options, '`serveMcp`')
  const names = ['run', ...(given.tools ?? []).map((tool) => tool.name)]
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice === undefined) return given
  throw invalidOptions(`Two tools have the name \`${twice}\`; each needs a name of its own.`)
}

async function serverSdk(): Promise<typeof sdkModule> {
  try {
    return await import('@modelcontextprotocol/server')
  } catch (error) {
    if (!isMissing(error)) throw error
    throw new HarnessError(
      'missing_dependency',
      '`serveMcp` needs `@modelcontextprotocol/server`, which is not installed. Run `npm install @modelcontextprotocol/server`.',
      { cause: error },
    )
  }
}

/** Makes this process the server, until its client closes standard input. */
async function serveOverStdio(factory: McpServerFactory, closing: AbortController): Promise<McpServing> {
  const { serveStdio, StdioServerTransport } = await stdioSdk()
  const { protocol, giveBack } = takeOutput()
  const handle = serveStdio(factory, { transport: new StdioServerTransport(process.stdin, protocol) })
  let isClosed = (): void => undefined
  const closed = new Promise<void>((resolve) => (isClosed = resolve))
  const closeServing = async (): Promise<void> => {
    closing.abort(new HarnessError('closed', 'The server was closed.'))
    await handle.close()
    giveBack()
    isClosed()
  }
  const closeWhenGone = (): void => void closeServing()
  process.stdin.once('end', closeWhenGone).once('close', closeWhenGone)
  return { url: null, closed, close: closeServing, [Symbol.asyncDispose]: closeServing }
}

async function stdioSdk(): Promise<typeof stdioModule> {
  // Bundlers accept within `try` that the package is not installed; `serveMcp` has reported that already.
  try {
    return await import('@modelcontextprotocol/server/stdio')
  } catch (cause) {
    throw new HarnessError('missing_dependency', '`serveMcp` needs `@modelcontextprotocol/server/stdio`.', { cause })
  }
}

/** Listens and serves. Rejects if the port is not available. */
async function serveHttp(
  sdk: ServerSdk,
  factory: McpServerFactory,
  {
    transport: { port = 0, host = '127.0.0.1', token, allowedHosts = [] },
    closing,
  }: { readonly transport: McpHttpTransport; readonly closing: AbortController },
): Promise<McpServing> {
  if (!isLoopback(host) && token === undefined) {
    throw invalidOptions(`Expected a \`token\`: other machines can reach the harness at \`${host}\`.`)
  }
  const handler = sdk.createMcpHandler(factory, { legacy: 'reject' })
  const legacy = new LegacySessions(sdk, factory)
  const answerRequest = async (request: Request): Promise<Response> =>
    (await sdk.isLegacyRequest(request)) ? legacy.fetch(request) : handler.fetch(request)
  const hosts = [...sdk.localhostAllowedHostnames(), host, ...allowedHosts]
  const checkOrigin = (request: Request): Response | undefined =>
    sdk.hostHeaderValidationResponse(request, hosts) ??
    sdk.originValidationResponse(request, hosts) ??
    refuseUnauthorized(request, token)
  const server = createServer(
    (incoming, outgoing) => void serveRequest(incoming, outgoing, { gate: checkOrigin, answer: answerRequest }),
  )
  await listenOn(server, port, host)
  const { port: actual } = server.address() as AddressInfo
  const closed = new Promise<void>((resolve) => void server.once('close', resolve))
  const closeServer = async (): Promise<void> => {
    closing.abort(new HarnessError('closed', 'The server was closed.'))
    await Promise.all([handler.close(), legacy.close()])
    server.closeAllConnections()
    server.close()
    await closed
  }
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${actual}/mcp`
  return { url, closed, close: closeServer, [Symbol.asyncDispose]: closeServer }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

function refuseUnauthorized(request: Request, token: string | undefined): Response | undefined {
  if (token === undefined || isSame(request.headers.get('authorization') ?? '', `Bearer ${token}`)) return undefined
  return new Response('Unauthorized', { status: 401, headers: { 'www-authenticate': 'Bearer' } })
}

/** Compares in constant time. */
function isSame(left: string, right: string): boolean {
  const sha256Of = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(sha256Of(left), sha256Of(right))
}

function listenOn(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

interface Serving {
  readonly gate: (request: Request) => Response | undefined
  readonly answer: (request: Request) => Promise<Response>
}

async function serveRequest(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { gate, answer }: Serving,
): Promise<void> {
  const gone = new AbortController()
  outgoing.on('close', () => gone.abort())
  try {
    const request = webRequest(incoming, gone.signal)
    await sendResponse(
      new URL(request.url).pathname === '/mcp' ? (gate(request) ?? (await answer(request))) : NOT_FOUND(),
      outgoing,
    )
  } catch {
    // The client is gone or did not send HTTP: it cannot be answered.
    if (!outgoing.headersSent) outgoing.writeHead(400)
    outgoing.end()
  }
}

const NOT_FOUND = (): Response => new Response('Not found', { status: 404 })

function webRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', url = '/', headers: given } = incoming
  const headers = new Headers()
  for (const [name, value] of Object.entries(given)) {
    for (const each of Array.isArray(value) ? value : [value ?? '']) headers.append(name, each)
  }
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const bounded = Readable.toWeb(
    Readable.from(bodyBytes(incoming), { objectMode: false }),
  ) as ReadableStream<Uint8Array>
  const body = hasBody ? { body: bounded, duplex: 'half' as const } : {}
  return new Request(new URL(url, `http://${given.host ?? 'localhost'}`), {
    method,
    headers,
    signal,
    ...body,
  })
}

/** Fails after 10 MiB: no call needs more. */
async function* bodyBytes(incoming: IncomingMessage): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const piece of incoming as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > LARGEST_MESSAGE) throw new Error(`A request is larger than ${LARGEST_MESSAGE} bytes.`)
    yield piece
  }
}

async function sendResponse(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  if (response.body === null) outgoing.end()
  else await pipeline(Readable.fromWeb(response.body as ReadableStream<Uint8Array>), outgoing)
}

/** Most open sessions; the least recently used one ends when another begins. */
const MOST_SESSIONS = 1_000

/**
 * Serves clients of older revisions, with one session each: a client can cancel its requests only within a session, and the
 * SDK's own handler for these revisions is stateless.
 */
class LegacySessions {
  readonly #sdk: typeof sdkModule
  readonly #factory: McpServerFactory
  readonly #sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()

  constructor(sdk: typeof sdkModule, factory: McpServerFactory) {
    this.#sdk = sdk
    this.#factory = factory
  }

  async fetch(request: Request): Promise<Response> {
    const id = request.headers.get('mcp-session-id')
    if (id === null) return (await this.#begin()).handleRequest(request)
    const session = this.#sessions.get(id)
    if (session === undefined) return new Response('Unknown session.', { status: 404 })
    this.#sessions.delete(id)
    this.#sessions.set(id, session)
    return session.handleRequest(request)
  }

  async close(): Promise<void> {
    const open = [...this.#sessions.values()]
    this.#sessions.clear()
    await Promise.allSettled(open.map((session) => session.close()))
  }

  /** A transport without a session yet: it opens one on `initialize` and rejects other requests. */
  async #begin(): Promise<WebStandardStreamableHTTPServerTransport> {
    const session: WebStandardStreamableHTTPServerTransport = new this.#sdk.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => this.#keep(id, session),
      onsessionclosed: (id) => {
        this.#sessions.delete(id)
      },
    })
    const server = await this.#factory({ era: 'legacy' })
    await server.connect(session)
    return session
  }

  #keep(id: string, session: WebStandardStreamableHTTPServerTransport): void {
    this.#sessions.set(id, session)
    const [oldest] = this.#sessions
    if (this.#sessions.size <= MOST_SESSIONS || oldest === undefined) return
    this.#sessions.delete(oldest[0])
    void oldest[1].close()
  }
}

type ServerSdk = typeof sdkModule

/** The tools to serve, and the signal that ends serving. */
export interface Offered {
  readonly name: string
  readonly tools: readonly ToolSpec[]
  /** Workspace of tools without a root of their own. */
  readonly root: string
  readonly closing: AbortSignal
}

/** Creates servers that offer these tools: one per connection or per request. */
function offeredServer(sdk: ServerSdk, offered: Offered): McpServerFactory {
  const { name, tools } = offered
  const definitions = tools.map(toolDefinition)
  return () => {
    const { server } = new sdk.McpServer({ name, version: CLIENT_INFO.version }, { capabilities: { tools: {} } })
    server.setRequestHandler('tools/list', () => ({ tools: definitions }) as unknown as ListToolsResult)
    server.setRequestHandler('tools/call', async ({ params }, context) => {
      const spec = tools.find((tool) => tool.name === params.name)
      if (spec !== undefined) return callResult(spec, (params.arguments ?? {}) as JsonObject, { context, offered })
      const known = tools.map((tool) => tool.name)
      throw new sdk.ProtocolError(
        sdk.ProtocolErrorCode.InvalidParams,
        `There is no tool \`${params.name}\`.${didYouMean(params.name, known)}`,
      )
    })
    return server
  }
}

function toolDefinition({ name, description, parameters, annotations = {} }: ToolSpec): JsonObject {
  return { name, description, inputSchema: parameters, annotations: annotationHints(annotations) }
}

function annotationHints(annotations: ToolAnnotations): JsonObject {
  const hints = Object.entries(HINTS).map(([name, hint]) => [hint, annotations[name as keyof ToolAnnotations]] as const)
  return Object.fromEntries(hints.filter(([, value]) => value !== undefined))
}

async function callResult(
  spec: ToolSpec,
  args: JsonObject,
  { context: { mcpReq }, offered: { root, closing } }: { readonly context: ServerContext; readonly offered: Offered },
): Promise<CallToolResult> {
  let outcome: ToolOutcome | undefined
  // An envelope has no images: they are copied from the outcome.
  const call: ToolSpec['call'] = async (given, context) => {
    outcome = (await needsApproval(spec, given, context)) ? NO_APPROVAL : await spec.call(given, context)
    return outcome
  }
  const limit = spec.timeoutMs === undefined ? [] : [AbortSignal.timeout(spec.timeoutMs)]
  const signal = AbortSignal.any([mcpReq.signal, closing, ...limit])
  const context = { root, signal, progress: (update: JsonInput) => notifyProgress(mcpReq, plainJson(update)) }
  try {
    const { ok, content, metadata } = await abortable(tryTool({ ...spec, call }, args, context), signal)
    const parts = outcome?.kind === 'succeeded' || outcome?.kind === 'failed' ? (outcome.parts ?? []) : []
    return {
      content: [{ type: 'text', text: content }, ...parts.map(contentBlock)],
      _meta: { 'thinharness/metadata': { ...metadata } },
      ...(!ok && { isError: true }),
    }
  } catch (error) {
    if (limit[0]?.aborted !== true) throw error
    const text = `The tool was ended after ${spec.timeoutMs ?? 0} ms; whether it did its work is unknown.`
    return { content: [{ type: 'text', text }], isError: true }
  }
}

async function needsApproval(
  { requiresApproval = false }: ToolSpec,
  args: JsonObject,
  { runId, callId, metadata }: ToolContext,
): Promise<boolean> {
  if (typeof requiresApproval === 'function') return requiresApproval(args, { runId, callId, metadata })
  return requiresApproval !== false
}

const NO_APPROVAL: ToolOutcome = {
  kind: 'failed',
  errorType: 'ApprovalRequired',
  content: 'This call requires an approval, which is not possible here. It was not executed.',
  retry: false,
}

/** Sends progress to a client that asked for it. A client that is gone does not fail the tool. */
function notifyProgress({ _meta, notify }: ServerContext['mcpReq'], update: JsonValue): void {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined || !isObject(update) || typeof update['progress'] !== 'number') return
  const message = typeof update['message'] === 'string' ? { message: update['message'] } : {}
  const params = { progressToken, progress: update['progress'], ...message }
  notify({ method: 'notifications/progress', params }).catch(() => undefined)
}

function contentBlock(part: ContentPart): CallToolResult['content'][number] {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'image':
      return 'url' in part
        ? { type: 'resource_link', uri: part.url, name: 'image' }
        : { type: 'image', data: part.data, mimeType: part.mediaType }
    case 'audio':
      return { type: 'audio', data: part.data, mimeType: part.mediaType }
    case 'file': {
      if ('id' in part) return { type: 'text', text: shownName(part) }
      const uri = `file:///${encodeURIComponent(part.name ?? 'file')}`
      return { type: 'resource', resource: { uri, blob: part.data, mimeType: part.mediaType } }
    }
  }
}
