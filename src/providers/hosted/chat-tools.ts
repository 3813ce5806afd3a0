import type { ToolDefinition } from '#core/model-session.js'
import type { JsonObject } from '#util/json.js'
import { approximate, hostedRefusal, isHosted, ownFields, setFields } from './hosted-definition.js'
import type { HostedDefinition } from './hosted-definition.js'

/** The models of OpenAI's chat completions that search the web. */
const SEARCH_MODEL = /-search(?:-|$)/

/**
 * The hosted tools of a server of chat completions.
 *
 * @example
 *   chatHosted('openrouter', 'x-ai/grok-4') // ['web_search', 'web_fetch']
 */
export function chatHosted(provider: string, model: string): readonly ('web_search' | 'web_fetch')[] {
  if (provider === 'openrouter') return ['web_search', 'web_fetch']
  return provider === 'openai-chat' && SEARCH_MODEL.test(model) ? ['web_search'] : []
}

/**
 * The hosted tools of a request to chat completions: OpenRouter's are among the `tools`, OpenAI's search models have a field. Throws
 * `invalid_options` for one that the model does not have.
 *
 * @example
 *   chatHostedFields(constants.tools, { provider: 'openrouter', model: 'openai/gpt-5.5' })
 *   // { tools: [{ type: 'openrouter:web_search', parameters: { max_uses: 8 } }], fields: {} }
 */
export function chatHostedFields(
  tools: readonly ToolDefinition[],
  { provider, model }: { readonly provider: string; readonly model: string },
): { readonly tools: readonly JsonObject[]; readonly fields: JsonObject } {
  const has = chatHosted(provider, model)
  const hosted = tools.filter(isHosted)
  const refused = hosted.find(({ hosted: { kind } }) => !(has as readonly string[]).includes(kind))
  if (refused !== undefined) throw hostedRefusal(refused, `${provider}:${model}`, has)
  if (provider === 'openrouter') return { tools: hosted.map(openRouterTool), fields: {} }
  return { tools: [], fields: Object.assign({}, ...hosted.map(searchOptions)) as JsonObject }
}

function openRouterTool({ hosted: { kind, config } }: HostedDefinition): JsonObject {
  const { maxUses, allowedDomains, blockedDomains, userLocation, contextSize, maxContentTokens } = config
  const isSearch = kind === 'web_search'
  const parameters = setFields({
    max_uses: maxUses,
    allowed_domains: allowedDomains,
    [isSearch ? 'excluded_domains' : 'blocked_domains']: blockedDomains,
    ...(isSearch && { search_context_size: contextSize, user_location: approximate(userLocation) }),
    ...(!isSearch && { max_content_tokens: maxContentTokens }),
  })
  return { type: `openrouter:${kind}`, parameters: { ...parameters, ...ownFields(config, 'openrouter') } }
}

function searchOptions({ hosted: { config } }: HostedDefinition): JsonObject {
  const { type, ...approximately } = approximate(config['userLocation']) ?? {}
  const location = type === undefined ? undefined : { type, approximate: approximately }
  const fields = setFields({ search_context_size: config['contextSize'], user_location: location })
  return { web_search_options: { ...fields, ...ownFields(config, 'openai-chat') } }
}
