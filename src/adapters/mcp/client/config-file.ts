import { readFile } from 'node:fs/promises'
import { messageOf } from '#contracts/errors.js'
import { invalidOptions } from '#contracts/parse.js'
import { isObject } from '#util/json.js'
import { unknownKey } from '#util/suggest.js'
import type { McpServer } from './mcp-server.js'
import type { McpServerOptions } from './server-options.js'
import { mcpHttp, mcpSse, mcpStdio } from './stdio-and-http.js'

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g

export interface LoadMcpServersOptions extends Omit<McpServerOptions, 'id' | 'toolPrefix'> {
  /** Values for `${NAME}`. Default: the environment of this process. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** Tools are called `<server>_<tool>`. Default true. */
  readonly prefix?: boolean | undefined
}

/**
 * The servers of a configuration as other tools write it: `.mcp.json` with `mcpServers`, also `servers` and `mcp_servers`, as an
 * object by name or a list with names; JSON, or YAML in a file that ends in `.yaml` or `.yml`. `${NAME}` and
 * `${NAME:-default}` in its strings stand for variables of the environment: a server gets only those that are named for it.
 * The other options apply to every server. Starts nothing. Rejects with `invalid_options`, naming the file, the
 * server and the field.
 *
 * @example
 * const mcpServers = await loadMcpServers('.mcp.json')
 */
export async function loadMcpServers(path: string, options: LoadMcpServersOptions = {}): Promise<McpServer[]> {
  const { env = process.env, prefix = true, ...shared } = options
  const document = await readDocument(path)
  return serverEntries(document, path).flatMap(([name, entry]) => {
    try {
      return configuredServer(name, entry, {
        env,
        shared: { ...shared, id: name, ...(prefix && { toolPrefix: name }) },
      })
    } catch (error) {
      throw invalidOptions(
        `\`${path}\`: server \`${name}\`: ${messageOf(error)}${error instanceof RangeError ? '.' : ''}`,
      )
    }
  })
}

const LIST_KEYS = ['mcpServers', 'servers', 'mcp_servers'] as const

async function readDocument(path: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw invalidOptions(`\`${path}\` could not be read: ${messageOf(error)}`, error)
  })
  try {
    if (!/\.ya?ml$/i.test(path)) return JSON.parse(text)
    const { parse } = await import('yaml')
    return parse(text)
  } catch (error) {
    throw invalidOptions(`\`${path}\` is broken: ${messageOf(error)}`, error)
  }
}

function serverEntries(document: unknown, path: string): [string, unknown][] {
  const list = isObject(document) ? LIST_KEYS.map((key) => document[key]).find((each) => each !== undefined) : undefined
  if (Array.isArray(list)) return list.map((entry: unknown, index) => [entryName(entry, path, index), entry])
  if (isObject(list)) return Object.entries(list)
  throw invalidOptions(`Expected \`${path}\` to hold \`mcpServers\`: an object of servers by name.`)
}

function entryName(entry: unknown, path: string, index: number): string {
  const name = isObject(entry) ? entry['name'] : undefined
  if (typeof name === 'string' && name !== '') return name
  throw invalidOptions(`Expected server ${index + 1} of \`${path}\` to have a \`name\`.`)
}

const FIELDS = 'name type transport command args env cwd url headers enabled disabled'.split(' ')

function configuredServer(
  name: string,
  entry: unknown,
  { env, shared }: { readonly env: Readonly<Record<string, string | undefined>>; readonly shared: McpServerOptions },
): McpServer[] {
  if (!isObject(entry)) throw invalidOptions('Expected an object.')
  if (entry['enabled'] === false || entry['disabled'] === true) return []
  const unknown = unknownKey(entry, FIELDS, `field of server \`${name}\``)
  if (unknown !== undefined) throw invalidOptions(unknown)
  const fields = interpolateVariables(entry, env) as typeof entry
  const { command, args = [], env: named = {}, cwd, url, headers = {}, ...rest } = fields
  const kind = transportKind(rest['type'] ?? rest['transport'], url)
  // Fields of the wrong type are rejected by the factories, which name the field.
  if (kind !== 'stdio') {
    const options = { ...shared, url, headers } as Parameters<typeof mcpHttp>[0]
    return [kind === 'sse' ? mcpSse(options) : mcpHttp(options)]
  }
  const [program, ...first] = Array.isArray(command) ? (command as unknown[]) : [command]
  const all = Array.isArray(args) ? [...first, ...(args as unknown[])] : args
  const options = { ...shared, command: program, args: all, env: named, ...(cwd !== undefined && { cwd }) }
  return [mcpStdio(options as Parameters<typeof mcpStdio>[0])]
}

const HTTP_NAMES: readonly unknown[] = ['http', 'streamable-http', 'streamableHttp', 'streamable_http']

function transportKind(stated: unknown, url: unknown): 'stdio' | 'http' | 'sse' {
  if (stated === undefined) return url === undefined ? 'stdio' : 'http'
  if (stated === 'stdio' || stated === 'sse') return stated
  if (HTTP_NAMES.includes(stated)) return 'http'
  throw invalidOptions(`Expected \`type\` to be \`stdio\`, \`http\` or \`sse\`, got ${JSON.stringify(stated)}.`)
}

/**
 * `value` with `${NAME}` and `${NAME:-default}` in all its strings replaced from `env`. Throws a `RangeError` that names the
 * variable and the place if there is neither a value nor a default.
 */
export function interpolateVariables(
  value: unknown,
  env: Readonly<Record<string, string | undefined>>,
  place = '',
): unknown {
  if (typeof value === 'string') {
    return value.replace(VARIABLE, (_whole, name: string, fallback: string | undefined) => {
      const found = env[name]
      if (found !== undefined && (found !== '' || fallback === undefined)) return found
      if (fallback !== undefined) return fallback
      throw new RangeError(`\`${place}\` names the variable \`${name}\`, which is not set`)
    })
  }
  if (Array.isArray(value)) return value.map((each, index) => interpolateVariables(each, env, `${place}[${index}]`))
  if (!isObject(value)) return value
  const entries = Object.entries(value)
  return Object.fromEntries(
    entries.map(([key, each]) => [key, interpolateVariables(each, env, place === '' ? key : `${place}.${key}`)]),
  )
}
