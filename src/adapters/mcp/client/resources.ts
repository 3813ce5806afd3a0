import { defineTool } from '#core/tools/define-tool.js'
import { ToolResult } from '#core/tools/tool-result.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { isObject, objectSchema } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { outcomeOfResult, stringOrEmpty } from './result-content.js'
import type { McpConnection } from '../sdk/connection.js'
import { allPages } from '../sdk/connection.js'
import type { ServerSettings } from './server-options.js'
import { publicToolName, mcpSource } from './tool-list.js'

/** A server's resources. Every request may open the connection, and rejects with a `HarnessError`. */
export interface McpResources {
  /** All pages. */
  list(): Promise<readonly McpResource[]>
  /** Templates of addresses. */
  templates(): Promise<readonly McpResourceTemplate[]>
  read(uri: string): Promise<readonly McpResourceContent[]>
  /** `…_list_resources` and `…_read_resource`, as a model gets them with `offer: ['resources']`. */
  asTools(): readonly ToolSpec[]
}

export interface McpResource {
  readonly uri: string
  readonly name: string
  readonly description?: string
  readonly mimeType?: string
}

export interface McpResourceTemplate {
  readonly uriTemplate: string
  readonly name: string
  readonly description?: string
  readonly mimeType?: string
}

/** One content of a resource: text, or `blob` in base64. */
export interface McpResourceContent {
  readonly uri: string
  readonly mimeType?: string
  readonly text?: string
  readonly blob?: string
}

/** How resources and prompts make their requests. */
export interface ServerUse {
  readonly settings: ServerSettings
  readonly request: <T>(work: (connection: McpConnection, timeoutMs: number) => Promise<T>) => Promise<T>
}

export function serverResources({ settings, request }: ServerUse): McpResources {
  const listPages = (method: string, member: string): Promise<JsonObject[]> =>
    request((connection, timeoutMs) => allPages(connection, { method, member }, { timeoutMs }))
  const resources: McpResources = {
    list: async () =>
      (await listPages('resources/list', 'resources')).map((item) => ({
        ...commonFields(item),
        uri: stringOrEmpty(item['uri']),
      })),
    templates: async () =>
      (await listPages('resources/templates/list', 'resourceTemplates')).map((item) => ({
        ...commonFields(item),
        uriTemplate: stringOrEmpty(item['uriTemplate']),
      })),
    read: (uri) =>
      request(async (connection, timeoutMs) =>
        resourceContents(await connection.request('resources/read', { uri }, { timeoutMs })),
      ),
    asTools: () => (tools ??= resourceTools(resources, settings)),
  }
  let tools: readonly ToolSpec[] | undefined
  return resources
}

function resourceTools(resources: McpResources, { id, toolPrefix, reach }: ServerSettings): readonly ToolSpec[] {
  const prefix = toolPrefix || id
  const list = defineTool({
    name: publicToolName('list_resources', prefix),
    description: `List the resources of the server \`${id}\`: addresses, and templates of addresses.`,
    parameters: objectSchema([], {}),
    annotations: { readOnly: true },
    reach,
    metadata: mcpSource(id, 'resources/list'),
    handler: async () => {
      const [found, templates] = await Promise.all([resources.list(), resources.templates().catch(() => [])])
      const metadata = { ...mcpSource(id, 'resources/list'), resource_count: found.length }
      return new ToolResult({ content: { resources: found, templates }, metadata })
    },
  })
  const read = defineTool({
    name: publicToolName('read_resource', prefix),
    description: `Read one resource of the server \`${id}\` by its address.`,
    parameters: objectSchema(['uri'], { uri: { type: 'string', description: 'Address, as listed.' } }),
    annotations: { readOnly: true },
    reach,
    metadata: mcpSource(id, 'resources/read'),
    handler: async ({ uri }) => {
      const blocks = (await resources.read(stringOrEmpty(uri))).map((resource) => ({ type: 'resource', resource }))
      return outcomeOfResult(
        { content: blocks },
        { ...mcpSource(id, 'resources/read'), uri: stringOrEmpty(uri) },
        false,
      )
    },
  })
  return [list, read]
}

function resourceContents(result: unknown): McpResourceContent[] {
  const { contents: list } = isObject(result) ? result : {}
  if (!Array.isArray(list)) throw new Error('The answer to `resources/read` has no list `contents`.')
  return list.filter(isObject).map(({ uri, mimeType, text: body, blob }) => ({
    uri: stringOrEmpty(uri),
    ...(typeof mimeType === 'string' && { mimeType }),
    ...(typeof body === 'string' && { text: body }),
    ...(typeof blob === 'string' && { blob }),
  }))
}

function commonFields({ name, description, mimeType }: JsonObject): Omit<McpResource, 'uri'> {
  return {
    name: stringOrEmpty(name),
    ...(typeof description === 'string' && { description }),
    ...(typeof mimeType === 'string' && { mimeType }),
  }
}
