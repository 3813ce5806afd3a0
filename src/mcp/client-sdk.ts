import type { Client, ElicitResult, OAuthClientProvider, Transport } from '@modelcontextprotocol/client'
import type { JsonObject } from '../util/json.js'
import type { ConnectionSetup, McpConnection, McpSdk, RequestOptions } from './connection.js'
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
  return {
    async open(setup) {
      const transport = transportTo(setup.endpoint, transports)
      const client = new http.Client(CLIENT_INFO, {
        capabilities: clientCapabilities(setup.asks),
        versionNegotiation: { mode: 'auto', probe: { timeoutMs: probeMs(setup) } },
        listChanged: { tools: { autoRefresh: false, debounceMs: 20, onChanged: setup.onToolsChanged } },
      })
      answer(client, setup.asks)
      await connected(client, transport, setup)
      return connectionOf(client)
    },
    async finishAuth(endpoint, code) {
      const transport = transportTo(endpoint, transports)
      if ('finishAuth' in transport) await transport.finishAuth(code)
    },
  }
}

type HttpTransport = Transport & { finishAuth(code: string): Promise<void> }

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
  return {
    protocolVersion: client.getNegotiatedProtocolVersion() ?? '',
    offers: { tools: tools !== undefined, resources: resources !== undefined, prompts: prompts !== undefined },
    instructions: client.getInstructions() ?? '',
    request: (method, params, options) =>
      client.request({ method, params: { ...params } }, ANYTHING, sdkOptions(options)),
    callTool: (definition, args, options) => callTool(client, definition, args, options),
    close: () => client.close().catch(() => undefined),
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
