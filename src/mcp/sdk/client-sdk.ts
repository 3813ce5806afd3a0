import type { Client, ElicitResult, OAuthClientProvider, Transport } from '@modelcontextprotocol/client'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import type { ConnectionSetup, McpConnection, McpEndpoint, McpSdk, RequestOptions } from '../client/connection.js'
import { allPages } from '../client/pages.js'
import { CLIENT_INFO, clientCapabilities, connected, nameOf, sdkOptions } from './sdk-client.js'
import { transportTo } from './sdk-transport.js'
import type { SdkTransports } from './sdk-transport.js'

/** `@modelcontextprotocol/client`: every revision, found out when connecting. */
export async function loadClientSdk(): Promise<McpSdk> {
  const [http, stdio] = await Promise.all([
    import('@modelcontextprotocol/client'),
    import('@modelcontextprotocol/client/stdio'),
  ])
  const transports: SdkTransports<Transport, HttpTransport, OAuthClientProvider> = { ...http, ...stdio }
  const opened = new WeakMap<McpEndpoint, HttpTransport>()
  return {
    async open(setup) {
      const transport = transportTo(setup.endpoint, transports)
      if (takesAuth(transport)) opened.set(setup.endpoint, transport)
      const client = new http.Client(CLIENT_INFO, {
        capabilities: clientCapabilities(setup.asks),
        versionNegotiation: { mode: 'auto', probe: { timeoutMs: probeMs(setup) } },
        listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: setup.onToolsChanged } },
      })
      answer(client, setup.asks)
      await connected(client, transport, setup)
      return connectionOf(client)
    },
    async finishAuth(endpoint, callback) {
      // What the server said of its authorization is with the transport that it refused.
      const transport = opened.get(endpoint) ?? transportTo(endpoint, transports)
      if (takesAuth(transport)) await transport.finishAuth(callback)
    },
  }
}

type HttpTransport = Transport & { finishAuth(callback: URLSearchParams): Promise<void> }

function takesAuth(transport: Transport): transport is HttpTransport {
  return 'finishAuth' in transport
}

/** An older server need not answer the question for its revision: over stdio it is given a part of the time only. */
function probeMs({ endpoint, connectMs }: ConnectionSetup): number {
  return endpoint.kind === 'stdio' ? Math.min(3_000, Math.ceil(connectMs / 3)) : connectMs
}

function answer(client: Client, { elicit, sample, roots }: ConnectionSetup['asks']): void {
  if (elicit !== null) {
    client.setRequestHandler(
      'elicitation/create',
      async ({ params }, { mcpReq }) => (await elicit(plain(params), mcpReq.signal)) as ElicitResult,
    )
  }
  if (sample !== null) {
    client.setRequestHandler('sampling/createMessage', async ({ params }, { mcpReq }) =>
      sample(plain(params), mcpReq.signal),
    )
  }
  if (roots !== null) client.setRequestHandler('roots/list', () => roots())
}

/** What the SDK has parsed is JSON; its types do not say so. */
function plain(params: unknown): JsonObject {
  return params as JsonObject
}

/** Lets any result through: what came is read by us, in one place for both SDKs. */
const ANYTHING = {
  '~standard': { version: 1, vendor: 'thinharness', validate: (value: unknown) => ({ value }) },
} as const

function connectionOf(client: Client): McpConnection {
  const { tools, resources, prompts } = client.getServerCapabilities() ?? {}
  const request: McpConnection['request'] = (method, params, options) =>
    client.request({ method, params: { ...params } }, ANYTHING, sdkOptions(options))
  return {
    protocolVersion: client.getNegotiatedProtocolVersion() ?? '',
    offers: { tools: tools !== undefined, resources: resources !== undefined, prompts: prompts !== undefined },
    instructions: client.getInstructions() ?? '',
    request,
    listTools: (options) => listTools(client, request, options),
    callTool: (definition, args, options) => callTool(client, definition, args, options),
    close: () => client.close().catch(() => undefined),
  }
}

/** The SDK's own list, which leaves out what must not be called; what it cannot read is read by us, who can say what is wrong. */
async function listTools(
  client: Client,
  request: McpConnection['request'],
  options: RequestOptions,
): Promise<readonly JsonObject[]> {
  const raw = (): Promise<readonly JsonObject[]> => allPages({ request }, 'tools/list', 'tools', options)
  if (client.getProtocolEra() !== 'modern') return raw()
  try {
    const { tools } = await client.listTools(undefined, { ...sdkOptions(options), cacheMode: 'refresh' })
    return tools as unknown as readonly JsonObject[]
  } catch (error) {
    if (isObject(error) && error['code'] === 'INVALID_RESULT') return raw()
    throw error
  }
}

async function callTool(
  client: Client,
  definition: JsonObject,
  args: JsonObject,
  options: RequestOptions,
): Promise<unknown> {
  type ToolDefinition = NonNullable<NonNullable<Parameters<Client['callTool']>[1]>['toolDefinition']>
  const name = nameOf(definition)
  const toolDefinition = definition as unknown as ToolDefinition
  return client.callTool({ name, arguments: { ...args } }, { ...sdkOptions(options), toolDefinition })
}
