import type { RequestConstants, ToolDefinition } from '#core/model-session.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { approximate, authorizationOf, hostedRefusal, isHosted, ownFields, setFields } from './hosted-definition.js'
import type { HostedDefinition } from './hosted-definition.js'

/** The hosted tools of the Messages API. */
export const ANTHROPIC_HOSTED = ['web_search', 'web_fetch', 'code_execution', 'connector'] as const

/** Header of the API for servers that it connects to. */
export const MCP_BETA = 'mcp-client-2025-11-20'

/**
 * A hosted tool in the form of the Messages API. The versions are those that all its models take; `providerOptions.anthropic` of a
 * tool can name another one. Throws `invalid_options` for a kind that the API does not have.
 *
 * @example
 *   anthropicTool(definition, 'claude-sonnet-5', { structuredOutput: null })
 *   // { type: 'web_search_20250305', name: 'web_search', max_uses: 8 }
 */
export function anthropicTool(
  tool: HostedDefinition,
  model: string,
  { structuredOutput }: Pick<RequestConstants, 'structuredOutput'>,
): JsonObject {
  const { kind, config } = tool.hosted
  const { maxUses, allowedDomains, blockedDomains, userLocation, maxContentTokens, citations = true } = config
  const domains = { max_uses: maxUses, allowed_domains: allowedDomains, blocked_domains: blockedDomains }
  const own = ownFields(config, 'anthropic')
  switch (kind) {
    case 'web_search':
      return {
        ...setFields({ type: 'web_search_20250305', name: kind, ...domains, user_location: approximate(userLocation) }),
        ...own,
      }
    case 'web_fetch': {
      const cites = structuredOutput === null && citations === true ? { enabled: true } : undefined
      const fields = { ...domains, max_content_tokens: maxContentTokens, citations: cites }
      return { ...setFields({ type: 'web_fetch_20250910', name: kind, ...fields }), ...own }
    }
    case 'code_execution':
      return { type: 'code_execution_20250825', name: kind, ...own }
    case 'connector':
      return { ...toolset(config), ...own }
    case 'file_search':
    case 'image_generation':
      throw hostedRefusal(tool, `anthropic:${model}`, ANTHROPIC_HOSTED)
  }
}

function toolset({ name, allowedTools }: JsonObject): JsonObject {
  const some = allowedTools as readonly string[] | undefined
  if (some === undefined) return { type: 'mcp_toolset', mcp_server_name: name }
  const configs = Object.fromEntries(some.map((tool) => [tool, { enabled: true }]))
  return { type: 'mcp_toolset', mcp_server_name: name, default_config: { enabled: false }, configs }
}

/**
 * The fields of a request for its connectors; empty if it has none. Throws `invalid_options` for a connector without an address.
 *
 * @example
 *   anthropicServers(constants.tools, 'claude-sonnet-5') // { mcp_servers: [{ type: 'url', name: 'wiki', url: 'https://wiki.example/mcp' }] }
 */
export function anthropicServers(tools: readonly ToolDefinition[], model: string): JsonObject {
  const servers = tools.filter(isHosted).flatMap((tool): JsonValue[] => {
    const { kind, config } = tool.hosted
    if (kind !== 'connector') return []
    if (config['url'] === undefined) throw hostedRefusal(tool, `anthropic:${model}`, ANTHROPIC_HOSTED)
    const { name, url } = config
    return [setFields({ type: 'url', name, url, authorization_token: authorizationOf(config) })]
  })
  return servers.length === 0 ? {} : { mcp_servers: servers }
}
