import { childEnvironment } from './child-environment.js'
import type { McpAuthProvider } from './connection.js'
import { serverAt } from './server.js'
import type { McpServer } from './server.js'
import { serverFetch } from './server-fetch.js'
import type { McpHeaders } from './server-fetch.js'
import { invalid, names, nonEmpty, resolveServerOptions, texts } from './server-options.js'
import type { McpServerOptions } from './server-options.js'

export interface McpStdioOptions extends McpServerOptions {
  /** The program that is the server; started without a shell. */
  readonly command: string
  readonly args?: readonly string[]
  /**
   * Variables of the server's environment, keys among them. Beside these it gets what any program needs (`PATH`, `HOME`, `TMPDIR`,
   * `LANG` and the like), and nothing else of the host's.
   */
  readonly env?: Readonly<Record<string, string>>
  /** Working directory of the process. Default: the host's. */
  readonly cwd?: string
}

export interface McpHttpOptions extends McpServerOptions {
  /** Address of the server, `http` or `https`. */
  readonly url: string | URL
  /** Sent with every request to the server's origin. */
  readonly headers?: McpHeaders
  /** OAuth, by the provider interface of the SDK. Default: none. */
  readonly auth?: McpAuthProvider
  /** Default: the platform's. */
  readonly fetch?: typeof fetch
}

/**
 * An MCP server that is a process of this machine. Nothing is started before its tools are first asked for. Throws
 * `invalid_options` for options that are wrong.
 *
 * @example
 * new Harness({ mcpServers: [mcpStdio({ id: 'files', command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '.'] })] })
 */
export function mcpStdio(options: McpStdioOptions): McpServer {
  const command = nonEmpty('command', options.command)
  const args = names('args', options.args ?? [])
  const named = texts('env', options.env ?? {})
  const settings = resolveServerOptions(options, {
    factory: 'mcpStdio',
    own: ['command', 'args', 'env', 'cwd'],
    defaultId: [command, ...args].join(' '),
    // A process of this machine: nothing confines it but the rights of this process's user.
    reach: { reads: ['/'], writes: ['/'], hosts: ['*'], programs: [command], secrets: Object.keys(named) },
  })
  return serverAt({ kind: 'stdio', command, args, env: childEnvironment(named), cwd: options.cwd ?? null }, settings)
}

/** An MCP server that is reached over streamable HTTP. */
export function mcpHttp(options: McpHttpOptions): McpServer {
  return httpServer('http', 'mcpHttp', options)
}

/** An MCP server that is reached over the older transport: server-sent events, and a request for each message. */
export function mcpSse(options: McpHttpOptions): McpServer {
  return httpServer('sse', 'mcpSse', options)
}

function httpServer(kind: 'http' | 'sse', factory: string, options: McpHttpOptions): McpServer {
  const { headers = {}, auth = null, fetch: base } = options
  const url = addressOf(options.url)
  if (typeof headers !== 'function') texts('headers', headers)
  // The query of an address may hold a key.
  const defaultId = `${url.origin}${url.pathname}`
  const secrets = typeof headers === 'function' ? ['headers'] : Object.keys(headers)
  const settings = resolveServerOptions(options, {
    factory,
    own: ['url', 'headers', 'auth', 'fetch'],
    defaultId,
    reach: { hosts: [url.host], secrets: auth === null ? secrets : [...secrets, 'auth'] },
  })
  return serverAt({ kind, url, fetch: serverFetch(url, headers, base), auth }, settings)
}

function addressOf(given: unknown): URL {
  const text = given instanceof URL ? given.href : nonEmpty('url', given)
  const url = URL.canParse(text) ? new URL(text) : null
  if (url !== null && /^https?:$/.test(url.protocol)) return url
  throw invalid('Expected `url` of an MCP server to be an address that begins with `http://` or `https://`.')
}
