import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type * as types from '@modelcontextprotocol/sdk/types.js'
import type { JsonObject } from '../util/json.js'
import type { ConnectionSetup, McpConnection, McpSdk } from './connection.js'
import { CLIENT_INFO, clientCapabilities, connected, nameOf, sdkOptions } from './sdk-client.js'
import { transportTo } from './sdk-transport.js'
import type { SdkTransports } from './sdk-transport.js'

/** `@modelcontextprotocol/sdk`: the revisions up to 2025-11-25. */
export async function loadFirstSdk(): Promise<McpSdk> {
  const [client, stdio, http, sse, schemas] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/client/stdio.js'),
    import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
    import('@modelcontextprotocol/sdk/client/sse.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ])
  const transports: SdkTransports<Transport, HttpTransport, OAuthClientProvider> = { ...stdio, ...http, ...sse }
  return {
    async open(setup) {
      const opened = new client.Client(CLIENT_INFO, {
        capabilities: clientCapabilities(setup.asks),
        listChanged: { tools: { autoRefresh: false, debounceMs: 20, onChanged: setup.onToolsChanged } },
      })
      answer(opened, setup.asks, schemas)
      // Its HTTP transport has a session id that may be `undefined`, which its own interface does not allow.
      await connected<Transport>(opened, transportTo(setup.endpoint, transports) as Transport, setup)
      return connectionOf(opened, schemas)
    },
    async finishAuth(endpoint, code) {
      const transport = transportTo(endpoint, transports)
      if ('finishAuth' in transport) await transport.finishAuth(code)
    },
  }
}

type Types = typeof types

type HttpTransport = Pick<Transport, 'close'> & { finishAuth(code: string): Promise<void> }

function answer(client: Client, { elicit, sample, roots }: ConnectionSetup['asks'], schemas: Types): void {
  if (elicit !== null) {
    client.setRequestHandler(schemas.ElicitRequestSchema, async ({ params }, { signal }) =>
      elicit(plain(params), signal),
    )
  }
  if (sample !== null) {
    client.setRequestHandler(schemas.CreateMessageRequestSchema, async ({ params }, { signal }) =>
      sample(plain(params), signal),
    )
  }
  if (roots !== null) client.setRequestHandler(schemas.ListRootsRequestSchema, () => roots())
}

/** What the SDK has parsed is JSON; its types do not say so. */
function plain(params: unknown): JsonObject {
  return params as JsonObject
}

function connectionOf(client: Client, schemas: Types): McpConnection {
  const { tools, resources, prompts } = client.getServerCapabilities() ?? {}
  return {
    // It keeps the revision to itself.
    protocolVersion: '',
    offers: { tools: tools !== undefined, resources: resources !== undefined, prompts: prompts !== undefined },
    instructions: client.getInstructions() ?? '',
    request: (method, params, options) =>
      client.request({ method, params: { ...params } }, schemas.ResultSchema, sdkOptions(options)),
    callTool: (definition, args, options) =>
      client.request(
        { method: 'tools/call', params: { name: nameOf(definition), arguments: { ...args } } },
        schemas.ResultSchema,
        sdkOptions(options),
      ),
    close: () => client.close().catch(() => undefined),
  }
}
