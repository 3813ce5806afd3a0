import { allPages, HINTS } from '../sdk/connection.js'
import type { McpConnection, McpRequestOptions } from '../sdk/connection.js'
import type { ServerSettings } from './server-options.js'
import { HarnessError, messageOf } from '#contracts/errors.js'
import { checkParameters } from '#core/tools/tool-options.js'
import type { ToolAnnotations, ToolContext, ToolOutcome, ToolSpec } from '#core/tools/tool-spec.js'
import { jsonSchemaOf } from '#schema/schema.js'
import { clipped } from '#core/tools/boundary/input-summary.js'
import { schemasIn } from '#schema/subschemas.js'
import { canonicalJson, isObject } from '#util/json.js'
import type { JsonObject, JsonSchema } from '#util/json.js'
import { didYouMean } from '#util/suggest.js'
import { createHash } from 'node:crypto'

/** Longest tool name that every provider accepts, in characters. */
const LONGEST_NAME = 64
const HASH_CHARS = 8

/** A tool as its server lists it. */
export interface McpTool {
  /** The server's name for it. */
  readonly name: string
  /** The name by which a model calls it. */
  readonly publicName: string
  /** As received. */
  readonly definition: JsonObject
  readonly digest: string
}

export interface ToolFilter {
  readonly prefix: string
  /** By the server's own names; null for all. */
  readonly include: readonly string[] | null
  readonly exclude: readonly string[]
}

/**
 * The selected tools of a server, of all pages, with their public names. A tool without a name, and one whose schema no model
 * can be given, is left out with a warning.
 */
export async function listTools(
  connection: McpConnection,
  serverId: string,
  {
    filter: { prefix, include, exclude },
    options,
  }: {
    readonly filter: ToolFilter
    readonly options: McpRequestOptions & { readonly warn: (message: string) => void }
  },
): Promise<McpTool[]> {
  if (!connection.offers.tools) return []
  const { warn } = options
  const pages = { method: 'tools/list', member: 'tools', warn }
  const listed = (await allPages(connection, pages, options)).flatMap((item) => namedDefinition(item, warn))
  const names = listed.map(({ name }) => name)
  for (const wanted of [...exclude, ...(include ?? [])]) {
    if (!names.includes(wanted)) warn(`It has no tool \`${wanted}\`.${didYouMean(wanted, names)}`)
  }
  const wanted = listed.filter(({ name }) => !exclude.includes(name) && include?.includes(name) !== false)
  const kept = wanted.filter((tool) => {
    const problem = schemaProblem(tool) ?? (connection.hasArgumentHeaders ? headerProblem(tool) : null)
    if (problem !== null) warn(`Its tool \`${tool.name}\` is not offered. ${problem}`)
    return problem === null
  })
  return withPublicNames(kept, serverId, prefix)
}

interface NamedDefinition {
  readonly name: string
  readonly definition: JsonObject
}

function namedDefinition(item: JsonObject, warn: (message: string) => void): readonly NamedDefinition[] {
  const { name } = item
  if (typeof name === 'string') return [{ name, definition: item }]
  warn('It lists a tool without a name, which is not offered.')
  return []
}

/** The problem of a tool that no model can be given; null if it can. */
function schemaProblem({ definition: { inputSchema } }: NamedDefinition): string | null {
  try {
    checkParameters(jsonSchemaOf(inputSchema as JsonSchema, 'its `inputSchema`'), 'its `inputSchema`')
    return null
  } catch (error) {
    return messageOf(error)
  }
}

const HEADER = 'x-mcp-header'

/** Arguments that are repeated in headers: each is a member of its own, of a simple type, with a name that no other has. */
function headerProblem({ definition: { inputSchema } }: NamedDefinition): string | null {
  const declared = [...schemasIn(inputSchema as JsonSchema)].filter((schema) => HEADER in schema)
  const members = [...memberSchemas(inputSchema as JsonSchema)].filter((schema) => HEADER in schema)
  const isSound = members.every(
    ({ [HEADER]: name, type }) =>
      typeof name === 'string' &&
      /^[!#$%&'*+\-.^_`|~\w]+$/.test(name) &&
      (type === 'string' || type === 'integer' || type === 'boolean'),
  )
  const names = new Set(members.map(({ [HEADER]: name }) => JSON.stringify(name).toLowerCase()))
  const isValid = isSound && names.size === members.length && declared.length === members.length
  return isValid ? null : `Its \`${HEADER}\` is not valid.`
}

/** The schemas of members of an object, at any depth. */
function* memberSchemas({ properties }: JsonSchema): Generator<JsonSchema> {
  if (!isObject(properties)) return
  for (const member of Object.values(properties) as JsonSchema[]) {
    if (!isObject(member)) continue
    yield member
    yield* memberSchemas(member)
  }
}

function withPublicNames(kept: readonly NamedDefinition[], serverId: string, prefix: string): McpTool[] {
  const taken = new Map<string, string>()
  return kept.map(({ name, definition }) => {
    const publicName = publicToolName(name, prefix)
    const other = taken.get(publicName)
    if (other !== undefined) {
      throw brokenServerError(
        serverId,
        `has two tools, \`${other}\` and \`${name}\`, that a model would call \`${publicName}\`: leave one out with \`excludeTools\``,
      )
    }
    taken.set(publicName, name)
    return { name, publicName, definition, digest: definitionDigest(definition) }
  })
}

function brokenServerError(serverId: string, problem: string): HarnessError {
  return new HarnessError('error', `MCP server \`${serverId}\` ${problem}.`)
}

/**
 * The name by which a model calls a server's tool: prefix and name joined by `_`, other characters than letters, digits,
 * `_` and `-` replaced by `_`. A name over 64 characters is cut and ends in a hash of the whole, so that it is the same in
 * every process and unique.
 */
export function publicToolName(name: string, prefix: string): string {
  const whole = prefix === '' ? name : `${prefix}_${name}`
  const clean = whole.replace(/[^A-Za-z0-9_-]/g, '_') || 'mcp_tool'
  if (clean.length <= LONGEST_NAME) return clean
  const hash = createHash('sha256').update(whole).digest('hex').slice(0, HASH_CHARS)
  return `${clean.slice(0, LONGEST_NAME - HASH_CHARS - 1)}_${hash}`
}

/** Digest of everything in a tool definition that a model reads or a host decides by. Independent of key order. */
function definitionDigest({ name, title, description, inputSchema, outputSchema, annotations }: JsonObject): string {
  const definition = { name, title, description, inputSchema, outputSchema, annotations }
  return jsonDigest(definition)
}

/** Digest of a JSON value, independent of key order. */
export function jsonDigest(value: unknown): string {
  return `sha256:${createHash('sha256').update(canonicalJson(value)).digest('hex')}`
}

/** A server's tool as a `ToolSpec`: its schema as received, its hints as annotations. */
export function mcpToolSpec(
  tool: McpTool,
  { id, requiresApproval, reach, sampling }: ServerSettings,
  call: (args: JsonObject, context: ToolContext) => Promise<ToolOutcome>,
): ToolSpec {
  const { name, publicName, definition } = tool
  const { title, description, inputSchema } = definition
  const annotations = toolAnnotations(definition)
  const rule: ToolSpec['requiresApproval'] =
    typeof requiresApproval === 'function'
      ? async (args) => requiresApproval({ toolName: name, args, annotations })
      : requiresApproval
  return Object.freeze({
    name: publicName,
    description: typeof description === 'string' ? description : typeof title === 'string' ? title : '',
    parameters: inputSchema as JsonSchema,
    annotations,
    requiresApproval: rule,
    reach,
    // A server does not say for which call it asks a model.
    ...((sampling === true || sampling === 'ask') && { sequential: true }),
    metadata: { ...mcpSource(id, name), ...(typeof title === 'string' && { title }), digest: tool.digest },
    call,
  })
}

/** What a result lacks of the tool's own schema for results; empty if nothing. The call has run, whatever it lacks. */
export async function resultProblem({ definition: { outputSchema } }: McpTool, result: unknown): Promise<string> {
  const { structuredContent, isError } = isObject(result) ? result : {}
  if (!isObject(outputSchema) || isError === true) return ''
  if (structuredContent === undefined) return 'The tool ran. Its result lacks the structured content that it declares.'
  const { schemaProblems } = await import('#schema/schema-check.js')
  const problems = await schemaProblems(outputSchema, structuredContent)
  if (problems.kind !== 'invalid') return ''
  const [{ path, message } = { path: [], message: '' }] = problems.issues
  const place = path.length === 0 ? '' : ` at \`${path.join('.')}\``
  return clipped(`The tool ran. Its result does not fit the schema that it declares${place}: ${message}`, 500)
}

/** The source of a result, for its metadata. */
export function mcpSource(serverId: string, toolName: string): JsonObject {
  return { source: 'mcp', mcp_server_id: serverId, mcp_tool_name: toolName }
}

function toolAnnotations({ annotations: hints }: JsonObject): ToolAnnotations {
  const given = isObject(hints) ? Object.entries(HINTS).map(([name, hint]) => [name, hints[hint]] as const) : []
  return Object.fromEntries(given.filter(([, value]) => typeof value === 'boolean'))
}
