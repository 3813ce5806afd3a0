import type { ToolDefinition } from '#core/model-session.js'
import type { JsonObject } from '#util/json.js'
import { approximate, authorizationOf, hostedRefusal, isHosted, ownFields, setFields } from './hosted-definition.js'
import type { HostedDefinition } from './hosted-definition.js'

/** The hosted tools of the Responses API. */
export const OPENAI_HOSTED = ['web_search', 'code_execution', 'file_search', 'image_generation', 'connector'] as const

/**
 * A hosted tool in the form of the Responses API. Throws `invalid_options` for a kind that the API does not have.
 *
 * @example
 *   openAiTool(definition, 'gpt-5.5') // { type: 'web_search', filters: { allowed_domains: ['example.org'] } }
 */
export function openAiTool(tool: HostedDefinition, model: string): JsonObject {
  const { kind, config } = tool.hosted
  const own = ownFields(config, 'openai')
  switch (kind) {
    case 'web_search': {
      const { allowedDomains, blockedDomains, userLocation, contextSize } = config
      const filters = setFields({ allowed_domains: allowedDomains, blocked_domains: blockedDomains })
      const hasFilters = Object.keys(filters).length > 0
      const location = approximate(userLocation)
      const fields = { filters: hasFilters ? filters : undefined, user_location: location }
      return { ...setFields({ type: kind, ...fields, search_context_size: contextSize }), ...own }
    }
    case 'code_execution':
      return {
        type: 'code_interpreter',
        container: setFields({ type: 'auto', file_ids: config['fileIds'] }),
        ...own,
      }
    case 'file_search': {
      const { storeIds, maxResults } = config
      return { ...setFields({ type: kind, vector_store_ids: storeIds, max_num_results: maxResults }), ...own }
    }
    case 'image_generation': {
      const { size, quality, format, background } = config
      return { ...setFields({ type: kind, size, quality, output_format: format, background }), ...own }
    }
    case 'connector':
      return { ...server(config), ...own }
    case 'web_fetch':
      throw hostedRefusal(tool, `openai:${model}`, OPENAI_HOSTED)
  }
}

/** The policy was asked when the tool was offered: the API asks nobody. */
function server(config: JsonObject): JsonObject {
  const { name, url, connectorId, allowedTools, description } = config
  return setFields({
    type: 'mcp',
    server_label: name,
    server_url: url,
    connector_id: connectorId,
    server_description: description,
    authorization: authorizationOf(config),
    allowed_tools: allowedTools,
    require_approval: 'never',
  })
}

/** The parts of a call that the API gives only if a request names them. */
const INCLUDED: Readonly<Record<string, string>> = {
  web_search: 'web_search_call.action.sources',
  code_execution: 'code_interpreter_call.outputs',
  file_search: 'file_search_call.results',
}

/**
 * The fields of a request for its hosted tools: results in full, and a bound of all their calls together. Empty if it has none.
 *
 * @example
 *   openAiHostedFields(constants.tools) // { include: ['web_search_call.action.sources'], max_tool_calls: 8 }
 */
export function openAiHostedFields(tools: readonly ToolDefinition[]): JsonObject {
  const hosted = tools.filter(isHosted).map((tool) => tool.hosted)
  if (hosted.length === 0) return {}
  const include = hosted.flatMap(({ kind }) => INCLUDED[kind] ?? [])
  const uses = hosted.map(({ config: { maxUses } }) => (typeof maxUses === 'number' ? maxUses : Infinity))
  const most = uses.reduce((sum, each) => sum + each, 0)
  return { ...(include.length > 0 && { include }), ...(Number.isFinite(most) && { max_tool_calls: most }) }
}

/** The word for a hosted tool in `tool_choice`; undefined for a tool of the harness. */
export function openAiChoice(tools: readonly ToolDefinition[], name: string): JsonObject | undefined {
  const tool = tools.find((each) => each.name === name)
  if (tool === undefined || !isHosted(tool)) return undefined
  const { kind } = tool.hosted
  if (kind === 'connector') return { type: 'mcp', server_label: name }
  // The API has no word of its own for this search.
  if (kind === 'web_search') return { type: 'allowed_tools', mode: 'required', tools: [{ type: kind }] }
  return { type: kind === 'code_execution' ? 'code_interpreter' : kind }
}
