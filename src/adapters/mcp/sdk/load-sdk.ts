import type * as http from '@modelcontextprotocol/client'
import type { Authorization } from './authorization.js'
import { EventStreams } from './event-streams.js'
import { CLIENT_INFO, LARGEST_MESSAGE } from './connection.js'
import type {
  ConnectionSetup,
  McpConnection,
  McpEndpoint,
  McpSdk,
  McpRequestOptions,
  ProcessCommand,
} from './connection.js'
import { passAnswersOn, receivedResult } from './messages.js'
import type {
  Client,
  ElicitResult,
  OAuthClientProvider,
  Transport,
  RequestOptions as SdkRequestOptions,
} from '@modelcontextprotocol/client'
import { HarnessError } from '#contracts/errors.js'
import type { JsonObject } from '#util/json.js'
import { processGroupsProblem, signalGroup } from '#toolbox/process/process-group.js'
import { isMissing } from '#util/platform/packages.js'

type Sdk = typeof http
type HttpTransport = Transport & { finishAuth(callback: URLSearchParams): Promise<void> }

/** The negotiated revisions: all of them, or only those up to 2025-11-25. */
export type Revisions = 'auto' | 'legacy'

/**
 * `@modelcontextprotocol/client`, which supports every revision of the protocol and negotiates it when connecting.
 * @throws HarnessError `missing_dependency` if the package is not installed.
 */
export async function loadSdk(revisions: Revisions = 'auto', importSdk?: () => Promise<Sdk>): Promise<McpSdk> {
  // Bundlers follow an `await import`; within `try` they accept that the package is not installed.
  try {
    return mcpSdk(importSdk === undefined ? await import('@modelcontextprotocol/client') : await importSdk(), revisions)
  } catch (error) {
    throw isMissing(error) ? missingSdk(error) : error
  }
}

/** Loaded for servers that are processes only: a worker has none. */
async function processTransport(process: ProcessCommand): Promise<Transport & { readonly pid: number | null }> {
  if (processGroupsProblem() === undefined) {
    return new (await import('./process-transport.js')).ProcessTransport(process)
  }
  try {
    const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio')
    const { command, args, env, cwd } = process
    const options = { command, args: [...args], env: { ...env }, ...(cwd !== null && { cwd }) }
    return new StdioClientTransport({ ...options, stderr: 'pipe', maxBufferSize: LARGEST_MESSAGE })
  } catch (error) {
    throw isMissing(error) ? missingSdk(error) : error
  }
}

function missingSdk(cause: unknown): HarnessError {
  return new HarnessError(
    'missing_dependency',
    'MCP servers need `@modelcontextprotocol/client`, which is not installed. Run `npm install @modelcontextprotocol/client`.',
    { cause },
  )
}

function mcpSdk(sdk: Sdk, revisions: Revisions): McpSdk {
  const opened = new WeakMap<McpEndpoint, HttpTransport>()
  const authorizations = new WeakMap<McpEndpoint, Authorization>()
  const authorizationOf = async (endpoint: McpEndpoint): Promise<Authorization | null> => {
    // The SDK itself signs requests with a key of the provider.
    if (endpoint.kind === 'stdio' || endpoint.auth === null || 'dpop' in endpoint.auth) return null
    const { Authorization: Authorizing } = await import('./authorization.js')
    const known = authorizations.get(endpoint) ?? new Authorizing(sdk, endpoint.auth, endpoint)
    authorizations.set(endpoint, known)
    return known
  }
  return {
    async open(setup) {
      const { endpoint } = setup
      const transport = passAnswersOn(await transportTo(endpoint, sdk, await authorizationOf(endpoint)))
      if (acceptsAuth(transport)) opened.set(endpoint, transport)
      const client = new sdk.Client(CLIENT_INFO, {
        capabilities: clientCapabilities(setup.asks),
        versionNegotiation: { mode: revisions, probe: { timeoutMs: probeMs(setup) } },
        listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: setup.onToolsChanged } },
      })
      answerServer(client, setup.asks)
      await connectClient(client, transport, setup)
      return clientConnection(client, setup.endpoint)
    },
    async finishAuth(endpoint, callback) {
      const authorization = await authorizationOf(endpoint)
      const code = callback.get('code')
      if (authorization !== null && code !== null) return authorization.finish(code, callback.get('iss'))
      // The transport that the server refused knows how the server wants to be authorized.
      const transport = opened.get(endpoint) ?? (await transportTo(endpoint, sdk, authorization))
      if (acceptsAuth(transport)) await transport.finishAuth(callback)
    },
  }
}

async function transportTo(endpoint: McpEndpoint, sdk: Sdk, authorization: Authorization | null): Promise<Transport> {
  if (endpoint.kind === 'stdio') {
    const confined = await endpoint.confine?.(endpoint)
    const transport = await processTransport(confined?.command ?? endpoint)
    // The client calls it, and then its own.
    transport.onclose = () => void confined?.close()
    confined?.uncovered?.addEventListener('abort', () => killNow(transport.pid), { once: true })
    return transport
  }
  const { url, auth } = endpoint
  const streams = new EventStreams((authorization ?? endpoint).fetch)
  const { fetch, reopen: reconnectionScheduler } = streams
  // Our type of a provider names only the members that we check; the SDK reads the rest.
  const options = { fetch, ...(auth !== null && { authProvider: auth as OAuthClientProvider }) }
  if (endpoint.kind === 'http') {
    return new sdk.StreamableHTTPClientTransport(url, { ...options, reconnectionScheduler })
  }
  // The SDK calls SSE deprecated; servers still use it.
  const { SSEClientTransport: SseTransport }: { SSEClientTransport: new (...args: SseArguments) => Transport } = sdk
  return new SseTransport(url, options)
}

function killNow(pid: number | null): void {
  signalGroup(pid ?? undefined, 'SIGKILL')
  try {
    if (pid !== null) process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

type SseArguments = ConstructorParameters<Sdk['StreamableHTTPClientTransport']>

function acceptsAuth(transport: Transport): transport is HttpTransport {
  return 'finishAuth' in transport
}

/** An older server need not answer the probe for its revision: over stdio the probe gets a third of the time, at most 3 s. */
function probeMs({ endpoint, connectMs }: ConnectionSetup): number {
  return endpoint.kind === 'stdio' ? Math.min(3_000, Math.ceil(connectMs / 3)) : connectMs
}

function answerServer(client: Client, { elicit, sample, roots }: ConnectionSetup['asks']): void {
  if (elicit !== null) {
    client.setRequestHandler(
      'elicitation/create',
      async ({ params }, { mcpReq }) => (await elicit(asJsonObject(params), mcpReq.signal)) as ElicitResult,
    )
  }
  if (sample !== null) {
    client.setRequestHandler('sampling/createMessage', async ({ params }, { mcpReq }) =>
      sample(asJsonObject(params), mcpReq.signal),
    )
  }
  if (roots !== null) client.setRequestHandler('roots/list', () => roots())
}

/** Parameters that the SDK has parsed are JSON; its types do not say so. */
function asJsonObject(params: unknown): JsonObject {
  return params as JsonObject
}

/** Accepts any result: results are read by our own code, which reports their problems. */
const ANYTHING = {
  '~standard': { version: 1, vendor: 'thinharness', validate: (value: unknown) => ({ value }) },
} as const

function clientConnection(client: Client, { kind }: McpEndpoint): McpConnection {
  const { tools, resources, prompts } = client.getServerCapabilities() ?? {}
  return {
    protocolVersion: client.getNegotiatedProtocolVersion() ?? '',
    hasArgumentHeaders: kind !== 'stdio' && client.getProtocolEra() === 'modern',
    offers: { tools: tools !== undefined, resources: resources !== undefined, prompts: prompts !== undefined },
    instructions: client.getInstructions() ?? '',
    request: async (method, params, options) =>
      receivedResult(await client.request({ method, params: { ...params } }, ANYTHING, requestOptions(options))),
    callTool: (definition, args, options) => callTool(client, definition, { args, options }),
    close: () => client.close().catch(() => undefined),
  }
}

async function callTool(
  client: Client,
  definition: JsonObject,
  { args, options }: { readonly args: JsonObject; readonly options: McpRequestOptions },
): Promise<unknown> {
  type ToolDefinition = NonNullable<NonNullable<Parameters<Client['callTool']>[1]>['toolDefinition']>
  // Without its schema for results: a result that does not fit it has run.
  const { name, outputSchema: _, ...rest } = definition
  const toolDefinition = { ...rest, name } as unknown as ToolDefinition
  const result = await client.callTool(
    { name: typeof name === 'string' ? name : '', arguments: { ...args } },
    { ...requestOptions(options), toolDefinition },
  )
  return receivedResult(result)
}

/** The requests that a server may send to us. */
function clientCapabilities({ elicit, sample, roots }: ConnectionSetup['asks']): {
  elicitation?: { form: { applyDefaults: true }; url: Empty }
  sampling?: Empty
  roots?: Empty
} {
  return {
    ...(elicit !== null && { elicitation: { form: { applyDefaults: true as const }, url: {} } }),
    ...(sample !== null && { sampling: {} }),
    ...(roots !== null && { roots: {} }),
  }
}

type Empty = Record<string, never>

/** Options of a request, in the SDK's form. */
function requestOptions({ signal, timeoutMs, onProgress }: McpRequestOptions): SdkRequestOptions {
  return {
    timeout: timeoutMs,
    resetTimeoutOnProgress: true,
    ...(signal !== undefined && { signal }),
    ...(onProgress !== undefined && { onprogress: onProgress }),
  }
}

/**
 * Connects a client in at most `connectMs`, whatever the SDK waits for. A failure while connecting is thrown, and nothing
 * stays open; a later one is reported to `onProblem`.
 */
async function connectClient(
  client: Client,
  transport: Transport,
  { connectMs, signal, onClosed, onStderr, onProblem }: ConnectionSetup,
): Promise<void> {
  transportStderr(transport)?.on('data', (piece: Buffer) => onStderr(piece.toString()))
  client.onerror = (error) => onProblem(error.message)
  const limit = new AbortController()
  const late = new Promise<never>((_, reject) => {
    const problem = (): string =>
      signal?.aborted === true ? 'It is needed no longer.' : `It was not ready after ${connectMs} ms.`
    limit.signal.addEventListener('abort', () => reject(new Error(problem())))
  })
  const timer = setTimeout(() => limit.abort(), connectMs)
  const end = (): void => limit.abort()
  signal?.addEventListener('abort', end)
  if (signal?.aborted === true) end()
  try {
    await Promise.race([client.connect(transport, { timeout: connectMs, signal: limit.signal }), late])
    client.onclose = onClosed
  } catch (error) {
    await Promise.allSettled([endUnready(transport), transport.close(), client.close()])
    throw error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
  }
}

/** A process that was not ready has nothing to complete. */
async function endUnready(transport: Transport): Promise<void> {
  await (transport as { _dispose?: () => Promise<void> })._dispose?.()
}

function transportStderr(transport: Transport): NodeJS.ReadableStream | null {
  return 'stderr' in transport ? (transport.stderr as NodeJS.ReadableStream | null) : null
}
