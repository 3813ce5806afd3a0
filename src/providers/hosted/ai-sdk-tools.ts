import type { HostedTool } from '#core/model-session.js'
import type { JsonObject } from '#util/json.js'
import { approximate, hostedRefusal, ownFields, setFields } from './hosted-definition.js'
import type { HostedDefinition } from './hosted-definition.js'

type Kind = HostedTool['kind']
type Form = readonly [name: string, args: (config: JsonObject) => JsonObject]

const domains = ({ maxUses, allowedDomains, blockedDomains }: JsonObject): JsonObject =>
  setFields({ maxUses, allowedDomains, blockedDomains })

/** The provider-defined tools of the AI SDK's packages, by provider. */
const FORMS: Readonly<Record<string, Partial<Readonly<Record<Kind, Form>>>>> = {
  anthropic: {
    web_search: [
      'web_search_20250305',
      (config) => ({ ...domains(config), ...setFields({ userLocation: approximate(config['userLocation']) }) }),
    ],
    web_fetch: [
      'web_fetch_20250910',
      (config) => ({
        ...domains(config),
        ...setFields({ maxContentTokens: config['maxContentTokens'] }),
        citations: { enabled: config['citations'] !== false },
      }),
    ],
    code_execution: ['code_execution_20250825', () => ({})],
  },
  openai: {
    web_search: [
      'web_search',
      ({ allowedDomains, blockedDomains, userLocation, contextSize }) => ({
        ...((allowedDomains ?? blockedDomains) ? { filters: setFields({ allowedDomains, blockedDomains }) } : {}),
        ...setFields({ userLocation: approximate(userLocation), searchContextSize: contextSize }),
      }),
    ],
    code_execution: ['code_interpreter', ({ fileIds }) => (fileIds === undefined ? {} : { container: { fileIds } })],
    file_search: [
      'file_search',
      ({ storeIds, maxResults }) => setFields({ vectorStoreIds: storeIds, maxNumResults: maxResults }),
    ],
    image_generation: [
      'image_generation',
      ({ size, quality, format, background }) => setFields({ size, quality, outputFormat: format, background }),
    ],
  },
  google: {
    web_search: ['google_search', () => ({})],
    web_fetch: ['url_context', () => ({})],
    code_execution: ['code_execution', () => ({})],
    file_search: [
      'file_search',
      ({ storeIds, maxResults }) => setFields({ fileSearchStoreNames: storeIds, topK: maxResults }),
    ],
  },
}

/**
 * A hosted tool as a provider-defined tool of the AI SDK; `type` is the word of the specification for one. Throws `invalid_options`
 * for a provider without one.
 *
 * @example
 *   aiSdkTool(definition, { provider: 'anthropic.messages', modelId: 'claude-sonnet-5' }, 'provider')
 *   // { type: 'provider', id: 'anthropic.web_search_20250305', name: 'web_search', args: { maxUses: 8 } }
 */
export function aiSdkTool(
  tool: HostedDefinition,
  { provider, modelId }: { readonly provider: string; readonly modelId: string },
  type: string,
): JsonObject {
  const [space = ''] = provider.split('.')
  const forms = Object.hasOwn(FORMS, space) ? FORMS[space] : undefined
  const { kind, config } = tool.hosted
  const form = forms?.[kind]
  if (form === undefined) throw hostedRefusal(tool, `${provider}:${modelId}`, Object.keys(forms ?? {}) as Kind[])
  const [name, args] = form
  return { type, id: `${space}.${name}`, name: tool.name, args: { ...args(config), ...ownFields(config, space) } }
}
