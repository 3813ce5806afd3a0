import { HarnessError } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import { didYouMean } from '../../util/suggest.js'
import type { McpConnection, RequestOptions } from './connection.js'
import { definitionDigest } from './definition-digest.js'
import { publicToolName } from './tool-name.js'

/** A tool as its server lists it. */
export interface McpTool {
  /** The server's own name of it. */
  readonly name: string
  /** What a model calls it by. */
  readonly publicName: string
  /** As it came. */
  readonly definition: JsonObject
  readonly digest: string
}

export interface ToolFilter {
  readonly prefix: string
  /** By the server's own names; null for all. */
  readonly include: readonly string[] | null
  readonly exclude: readonly string[]
}

/** All pages of a server's tools, those that are wanted, with their public names. Throws for what no model can be given. */
export async function listTools(
  connection: McpConnection,
  serverId: string,
  { prefix, include, exclude }: ToolFilter,
  options: RequestOptions & { readonly warn: (message: string) => void },
): Promise<McpTool[]> {
  if (!connection.offers.tools) return []
  const listed = (await connection.listTools(options)).map((item) => named(item, serverId))
  const names = listed.map(({ name }) => name)
  for (const wanted of [...exclude, ...(include ?? [])]) {
    if (!names.includes(wanted)) options.warn(`It has no tool \`${wanted}\`.${didYouMean(wanted, names)}`)
  }
  const kept = listed.filter(({ name }) => !exclude.includes(name) && include?.includes(name) !== false)
  return withPublicNames(kept, serverId, prefix)
}

interface NamedDefinition {
  readonly name: string
  readonly definition: JsonObject
}

function named(item: JsonObject, serverId: string): NamedDefinition {
  const { name } = item
  if (typeof name === 'string') return { name, definition: item }
  throw broken(serverId, 'lists a tool without a name')
}

function withPublicNames(kept: readonly NamedDefinition[], serverId: string, prefix: string): McpTool[] {
  const taken = new Map<string, string>()
  return kept.map(({ name, definition }) => {
    const { inputSchema } = definition
    if (!isObject(inputSchema) || inputSchema['type'] !== 'object') {
      throw broken(serverId, `lists the tool \`${name}\` with an \`inputSchema\` that is not of type \`object\``)
    }
    const publicName = publicToolName(name, prefix)
    const other = taken.get(publicName)
    if (other !== undefined) {
      throw broken(
        serverId,
        `has two tools, \`${other}\` and \`${name}\`, that a model would call \`${publicName}\`: leave one out with \`excludeTools\``,
      )
    }
    taken.set(publicName, name)
    return { name, publicName, definition, digest: definitionDigest(definition) }
  })
}

function broken(serverId: string, problem: string): HarnessError {
  return new HarnessError('error', `MCP server \`${serverId}\` ${problem}.`)
}
