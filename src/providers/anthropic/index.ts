import type { Model } from '../../contracts/model.js'
import { isObject } from '../../util/json.js'
import { oneOf, partial } from '../../util/shape.js'
import { wireModel } from '../wire/model.js'
import { parseModelOptions, PROVIDER_OPTIONS } from '../wire/options.js'
import type { ProviderOptions } from '../http/options.js'
import { messagesFormat } from './format.js'
import { modelCapabilities } from './models.js'
import { PROVIDER } from './provider.js'
import { refuseTemperature } from './request.js'
import type { AnthropicApiVersion } from './request.js'

export type { AnthropicApiVersion } from './request.js'

export interface AnthropicOptions extends ProviderOptions {
  /**
   * Version of the API. Default `2023-06-01`: every model, key and host takes it, and it has all that is used here.
   * `2026-10-21` refuses `temperature`, and is refused by hosts that are older.
   */
  readonly apiVersion?: AnthropicApiVersion
}

const OPTIONS = partial<AnthropicOptions>({ ...PROVIDER_OPTIONS, apiVersion: oneOf('2023-06-01', '2026-10-21') })

/**
 * A model of Anthropic's Messages API, such as `anthropic('claude-sonnet-5')`. The key is `apiKey` or
 * `$ANTHROPIC_API_KEY`. Prompts are cached unless `promptCache` is false. `client` may be an `Anthropic` of
 * `@anthropic-ai/sdk` or a variant of it (Bedrock, Vertex). Throws `invalid_options`.
 */
export function anthropic(id: string, options: AnthropicOptions = {}): Model {
  const { apiVersion = '2023-06-01', ...defaults } = parseModelOptions(OPTIONS, options, 'anthropic')
  if (defaults.temperature !== undefined) refuseTemperature(apiVersion)
  return wireModel({
    provider: PROVIDER,
    id,
    options: defaults,
    format: messagesFormat({ id, version: apiVersion, defaults, automaticCaching: takesAutomaticCaching(defaults) }),
    headers: { 'anthropic-version': apiVersion },
    defaultBaseUrl: 'https://api.anthropic.com',
    baseUrlVariable: 'ANTHROPIC_BASE_URL',
    apiKeyVariables: ['ANTHROPIC_API_KEY'],
    auth: (key) => ({ 'x-api-key': key }),
    clientCall: 'messages.create',
    capabilities: { ...modelCapabilities(id), longCacheWrites: cachesLong(defaults) },
  })
}

/** By its options; the settings of a run may ask for it too. */
function cachesLong({ promptCache, extraBody = {} }: ProviderOptions): boolean {
  return (typeof promptCache === 'object' && promptCache.ttl === '1h') || JSON.stringify(extraBody).includes('"1h"')
}

/** Bedrock and Vertex refuse a `cache_control` at the top of a request. */
function takesAutomaticCaching({ client, baseUrl }: ProviderOptions): boolean {
  const url = isObject(client) && 'baseURL' in client ? client['baseURL'] : baseUrl
  return typeof url !== 'string' || !/bedrock|aiplatform/.test(url)
}
