import type { Confine, McpAuthProvider } from '../sdk/connection.js'
import { serverEnvironment } from './server-environment.js'
import { serverFetch } from './server-fetch.js'
import type { McpHeaders } from './server-fetch.js'
import { SERVER_OPTIONS, serverSettings } from './server-options.js'
import type { McpServerOptions } from './server-options.js'
import { serverAt } from './mcp-server.js'
import type { McpServer } from './mcp-server.js'
import { parse } from '#contracts/parse.js'
import type { SandboxMode } from '#core/tools/tool-spec.js'
import { SANDBOX_OPTIONS, sandboxSettings } from '#toolbox/sandbox/options.js'
import type { SandboxOptions } from '#toolbox/sandbox/options.js'
import {
  either,
  filledString,
  functionOf,
  having,
  leaf,
  list,
  object,
  optional,
  record,
  secret,
  string,
} from '#util/validate.js'
import { keepSecretArguments, keepSecretsIn, keepSecretsOf } from '#util/secrets.js'
import { basename } from 'node:path'

export interface McpStdioOptions extends McpServerOptions, Omit<SandboxOptions, 'sandbox'> {
  /**
   * `auto`: the server runs in a sandbox if this machine has one; `required`: it is not started without one. In it, the server can
   * write to its `cwd` only, and has no network unless `network` is given. Default `off`.
   */
  readonly sandbox?: SandboxMode | undefined
  /** The server's program; started without a shell. */
  readonly command: string
  readonly args?: readonly string[] | undefined
  /**
   * Variables of the server's environment, including keys. In addition it gets the variables that any program needs (`PATH`, `HOME`, `TMPDIR`,
   * `LANG` and the like), and no others of the host.
   */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Working directory of the process. Default: the host's. */
  readonly cwd?: string | undefined
}

export interface McpHttpOptions extends McpServerOptions {
  /** Address of the server, `http` or `https`. */
  readonly url: string | URL
  /** Sent with every request to the server's origin. */
  readonly headers?: McpHeaders | undefined
  /** OAuth, with the provider interface of the SDK. Default: none. */
  readonly auth?: McpAuthProvider | undefined
  /** Default: the platform's. */
  readonly fetch?: typeof fetch | undefined
}

/**
 * An MCP server that is a process of this machine. It is started when its tools are first needed. Throws
 * `invalid_options`.
 *
 * @example
 * new Harness({ mcpServers: [mcpStdio({ id: 'files', command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '.'] })] })
 */
export function mcpStdio(options: McpStdioOptions): McpServer {
  const parsed = parse(STDIO_OPTIONS, options, '`mcpStdio`')
  const { command, args = [], env = {}, cwd = null, sandbox = 'off', ...common } = parsed
  keepSecretsOf(Object.entries(env))
  keepSecretArguments(args)
  const confinement = sandboxSettings({ ...parsed, sandbox }, 'mcpStdio')
  const settings = serverSettings(common, {
    defaultId: programName(command, args, cwd),
    // A process of this machine: only the rights of this process's user confine it.
    reach: { reads: ['/'], writes: ['/'], hosts: ['*'], programs: [command], secrets: Object.keys(env) },
  })
  const confine: Confine = async (process) => {
    const { confineWith } = await import('../sdk/confine.js')
    return confineWith(confinement, Object.keys(env))(process)
  }
  const process = { command, args, env: serverEnvironment(env), cwd, confine: sandbox === 'off' ? null : confine }
  return serverAt({ kind: 'stdio', ...process }, settings)
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
  const parsed = parse(HTTP_OPTIONS, options, `\`${factory}\``)
  const { url: address, headers: given = {}, auth = null, fetch: base, ...common } = parsed
  const { url, headers } = withCredentials(new URL(address), given)
  keepSecretsIn(String(address))
  if (typeof headers !== 'function') keepSecretsOf(Object.entries(headers), true)
  const secrets = typeof headers === 'function' ? ['headers'] : Object.keys(headers)
  const settings = serverSettings(common, {
    // The query of an address may contain a key.
    defaultId: `${url.origin}${url.pathname}`,
    reach: { hosts: [url.host], secrets: auth === null ? secrets : [...secrets, 'auth'] },
  })
  return serverAt({ kind, url, fetch: serverFetch(url, headers, base), auth }, settings)
}

/** The user name and password of an address as a header: requests with them in the address are rejected by `fetch`. */
function withCredentials(address: URL, headers: McpHeaders): { readonly url: URL; readonly headers: McpHeaders } {
  const { username, password } = address
  if (username === '' && password === '') return { url: address, headers }
  const url = new URL(address)
  url.username = url.password = ''
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  const authorization = `Basic ${Buffer.from(pair).toString('base64')}`
  return {
    url,
    headers:
      typeof headers === 'function'
        ? async () => ({ authorization, ...(await headers()) })
        : { authorization, ...headers },
  }
}

const STDIO_OPTIONS = object<McpStdioOptions>({
  ...SERVER_OPTIONS,
  ...SANDBOX_OPTIONS,
  command: secret(filledString),
  args: optional(list(secret(string))),
  env: optional(record(secret(string))),
  cwd: optional(string),
})

const HTTP_OPTIONS = object<McpHttpOptions>({
  ...SERVER_OPTIONS,
  url: secret(leaf('an address that begins with `http://` or `https://`', isHttpAddress)),
  headers: optional(either(record(secret(string)), functionOf<Extract<McpHeaders, () => unknown>>())),
  auth: optional(having('a provider of OAuth')),
  fetch: optional(functionOf()),
})

function isHttpAddress(given: unknown): boolean {
  const text = given instanceof URL ? given.href : given
  return typeof text === 'string' && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}

/** The command of a program that runs packages; null if it needs none. */
const RUNNERS: Readonly<Record<string, string | null>> = {
  npx: null,
  pnpx: null,
  bunx: null,
  uvx: null,
  npm: 'exec',
  pnpm: 'dlx',
  yarn: 'dlx',
  bun: 'x',
  pipx: 'run',
}

/** Options of these programs that have no value. */
const FLAGS = ['-y', '--yes', '-q', '--quiet', '--']
const PACKAGE = /^((?:@[\w.-]+\/)?[\w.-]+)(?:@[\w.^~-]*)?$/

/** Programs that run a file of code. */
const INTERPRETERS = /^(?:node|bun|deno|tsx|python[\d.]*|ruby|php)(?:\.exe)?$/i
/** A path, not an address or an option. */
const CODE = /^(?:[A-Za-z]:)?[^-:@?=][^:@?=]*\.(?:[cm]?[jt]sx?|py|rb|php)$/
/** Folders that many programs have. */
const COMMON_FOLDER = /^(?:\.+|dist|build|src|lib|out|bin)?$/

/** The name of a command: the package or the file of code that it runs, or its program. No other argument: those may contain keys. */
function programName(command: string, args: readonly string[], cwd: string | null): string {
  const program = basename(command.replaceAll('\\', '/')) || command
  const code = INTERPRETERS.test(program) ? args.find((arg) => CODE.test(arg)) : undefined
  if (code !== undefined) {
    const names = `${cwd ?? ''}/${code}`.split(/[\\/]/)
    const folder = names.slice(0, -1).findLast((name) => !COMMON_FOLDER.test(name))
    return [folder ?? [], names.at(-1) ?? ''].flat().join('/')
  }
  const runs = RUNNERS[program.replace(/\.(?:cmd|exe)$/i, '')]
  if (runs === undefined) return program
  const rest = runs === null ? args : args[0] === runs ? args.slice(1) : []
  const first = rest.find((arg) => !FLAGS.includes(arg)) ?? ''
  return (first.startsWith('-') ? undefined : PACKAGE.exec(first)?.[1]) ?? program
}
