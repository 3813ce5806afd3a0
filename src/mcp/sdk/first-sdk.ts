import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type * as types from '@modelcontextprotocol/sdk/types.js'
import type { JsonObject } from '../../util/json.js'
import type { ConnectionSetup, McpConnection, McpEndpoint, McpSdk } from '../client/connection.js'
import { allPages } from '../client/pages.js'
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
  const opened = new WeakMap<McpEndpoint, HttpTransport>()
  return {
    async open(setup) {
      const opening = new client.Client(CLIENT_INFO, {
        capabilities: clientCapabilities(setup.asks),
        listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: setup.onToolsChanged } },
      })
      answer(opening, setup.asks, schemas)
      const transport = transportTo(setup.endpoint, transports)
      if ('finishAuth' in transport) opened.set(setup.endpoint, transport)
      // Its HTTP transport has a session id that may be `undefined`, which its own interface does not allow.
      await connected<Transport>(opening, transport as Transport, setup)
      return connectionOf(opening, schemas)
    },
    async finishAuth(endpoint, callback) {
      // What the server said of its authorization is with the transport that it refused.
      const transport = opened.get(endpoint) ?? transportTo(endpoint, transports)
      if ('finishAuth' in transport) await transport.finishAuth(callback.get('code') ?? '')
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
  const request: McpConnection['request'] = (method, params, options) =>
    client.request({ method, params: { ...params } }, schemas.ResultSchema, sdkOptions(options))
  return {
    // It keeps the revision to itself.
    protocolVersion: '',
    offers: { tools: tools !== undefined, resources: resources !== undefined, prompts: prompts !== undefined },
    instructions: client.getInstructions() ?? '',
    request,
    listTools: (options) => allPages({ request }, 'tools/list', 'tools', options),
    callTool: (definition, args, options) =>
      request('tools/call', { name: nameOf(definition), arguments: args }, options),
    close: () => client.close().catch(() => undefined),
  }
}
