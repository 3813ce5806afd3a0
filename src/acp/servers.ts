import type { McpServer } from '@agentclientprotocol/sdk'
import type * as mcpModule from '../mcp/index.js'
import type { McpServer as Source } from '../mcp/index.js'
import { messageOf } from '../contracts/errors.js'

export interface GivenServers {
  readonly sources: readonly Source[]
  /** Why some of the servers are missing. */
  readonly warnings: readonly string[]
}

/** The editor's MCP servers as sources of tools. Processes of this machine run in the workspace. */
export async function sourcesOf(servers: readonly McpServer[], root: string): Promise<GivenServers> {
  if (servers.length === 0) return { sources: [], warnings: [] }
  const make = await import('../mcp/index.js')
  const sources: Source[] = []
  const warnings: string[] = []
  for (const server of servers) {
    try {
      sources.push(sourceOf(server, root, make))
    } catch (error) {
      warnings.push(`The MCP server \`${server.name}\` cannot be used: ${messageOf(error)}`)
    }
  }
  return { sources, warnings }
}

function sourceOf(server: McpServer, root: string, { mcpHttp, mcpSse, mcpStdio }: typeof mcpModule): Source {
  if ('command' in server) {
    const { name, command, args } = server
    const env = Object.fromEntries(server.env.map((variable) => [variable.name, variable.value]))
    return mcpStdio({ id: idOf(name), command, args, env, cwd: root })
  }
  const headers = Object.fromEntries(server.headers.map((header) => [header.name, header.value]))
  const { name, url, type } = server
  return type === 'http' ? mcpHttp({ id: idOf(name), url, headers }) : mcpSse({ id: idOf(name), url, headers })
}

/** An id has no characters that names of tools cannot have. */
function idOf(name: string): string {
  const id = name.replaceAll(/[^\w-]+/g, '_').slice(0, 32)
  return id === '' ? 'server' : id
}
