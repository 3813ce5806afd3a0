import type {
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import { mcpHttp } from 'thinharness/mcp'
import type { McpServer } from 'thinharness/mcp'

/** What is kept for one person and one server, such as an encrypted row of a database. */
export interface Login {
  readonly client?: StoredOAuthClientInformation
  readonly discovery?: OAuthDiscoveryState
  readonly verifier?: string
  readonly tokens?: StoredOAuthTokens
}

export interface LoginStore {
  load(): Promise<Login>
  /** Replaces these members, and keeps the others. */
  save(change: Login): Promise<void>
}

const CALLBACK = 'https://shop.example.com/mcp/callback'

/** The tracker with the account of one person. `state` is a random value of their session; `sendTo` keeps the address of the login page. */
export function trackerOf(store: LoginStore, state: string, sendTo: (page: URL) => void): McpServer {
  const auth: OAuthClientProvider = {
    redirectUrl: CALLBACK,
    clientMetadata: {
      client_name: 'Shop assistant',
      redirect_uris: [CALLBACK],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    state: () => state,
    redirectToAuthorization: sendTo,
    clientInformation: async () => (await store.load()).client,
    saveClientInformation: (client) => store.save({ client }),
    discoveryState: async () => (await store.load()).discovery,
    saveDiscoveryState: (discovery) => store.save({ discovery }),
    codeVerifier: async () => (await store.load()).verifier ?? '',
    saveCodeVerifier: (verifier) => store.save({ verifier }),
    tokens: async () => (await store.load()).tokens,
    saveTokens: (tokens) => store.save({ tokens }),
  }
  const includeTools = ['list_issues', 'get_issue']
  return mcpHttp({ id: 'tracker', url: 'https://tracker.example.com/mcp', auth, includeTools, required: true })
}

/** The route of the callback. */
export async function onCallback(server: McpServer, address: string, state: string): Promise<void> {
  const { searchParams } = new URL(address)
  if (searchParams.get('state') !== state) throw new Error('This login was not begun here.')
  await server.finishAuth(searchParams)
}
