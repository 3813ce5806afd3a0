import { LARGEST_MESSAGE } from '../client/connection.js'
import type { McpEndpoint } from '../client/connection.js'

/** The transports of an SDK, as far as we use them. The SDKs call SSE deprecated; servers still use it. */
export interface SdkTransports<Stdio, Http, Provider> {
  readonly StdioClientTransport: new (options: StdioOptions) => Stdio
  readonly StreamableHTTPClientTransport: new (url: URL, options: HttpOptions<Provider>) => Http
  readonly SSEClientTransport: new (url: URL, options: HttpOptions<Provider>) => Http
}

/** A transport, not yet started. */
export function transportTo<Stdio, Http, Provider>(
  endpoint: McpEndpoint,
  transports: SdkTransports<Stdio, Http, Provider>,
): Stdio | Http {
  switch (endpoint.kind) {
    case 'stdio': {
      const { command, args, env, cwd } = endpoint
      return new transports.StdioClientTransport({
        command,
        args: [...args],
        env: { ...env },
        ...(cwd !== null && { cwd }),
        stderr: 'pipe',
        maxBufferSize: LARGEST_MESSAGE,
      })
    }
    case 'http':
      return new transports.StreamableHTTPClientTransport(endpoint.url, httpOptions(endpoint))
    case 'sse':
      return new transports.SSEClientTransport(endpoint.url, httpOptions(endpoint))
  }
}

interface StdioOptions {
  readonly command: string
  readonly args: string[]
  readonly env: Record<string, string>
  readonly cwd?: string
  readonly stderr: 'pipe'
  readonly maxBufferSize: number
}

interface HttpOptions<Provider> {
  readonly fetch: typeof fetch
  readonly authProvider?: Provider
}

function httpOptions<Provider>(endpoint: McpEndpoint & { readonly kind: 'http' | 'sse' }): HttpOptions<Provider> {
  // What a provider can do beyond what our type names is between it and the SDK.
  return { fetch: endpoint.fetch, ...(endpoint.auth !== null && { authProvider: endpoint.auth as Provider }) }
}
