import type { Model } from '#core/model-session.js'
import { isObject } from '#util/json.js'
import { boolean, oneOf, partial } from '#util/validate.js'
import { late } from '#util/late.js'
import { wireModel } from '../wire/wire-model.js'
import { parseModelOptions, PROVIDER_OPTIONS } from '../wire/options.js'
import type { ProviderOptions } from '../http/options.js'
import { lateFormat } from '../http/wire-format.js'
import { KNOWN, modelCapabilities, PROVIDER, rejectTemperature } from './models.js'
import type { AnthropicApiVersion } from './models.js'

export type { AnthropicApiVersion } from './models.js'

export interface AnthropicOptions extends ProviderOptions {
  /**
   * Version of the API. Default: that of the `client`, or else `2023-06-01`, which every model, key and host supports and
   * which has everything that is used here. `2026-10-21` rejects `temperature`, and older hosts reject it.
   */
  readonly apiVersion?: AnthropicApiVersion | undefined
  /**
   * Message threads (a beta feature): the server keeps the conversation in its memory for some minutes, and a request sends only
   * the new messages. Without a thread, or after it has expired, the whole conversation is sent. Its default version of the API is
   * `2026-10-21`. Default false: nothing is kept.
   */
  readonly threads?: boolean | undefined
}

const OPTIONS = partial<AnthropicOptions>({
  ...PROVIDER_OPTIONS,
  apiVersion: oneOf('2023-06-01', '2026-10-21'),
  threads: boolean,
})

const REQUEST = late(() => import('./request.js'))

/**
 * A model of Anthropic's Messages API, such as `anthropic('claude-sonnet-5')`. The key is `apiKey` or
 * `$ANTHROPIC_API_KEY`. Prompts are cached unless `promptCache` is false. `client` may be an `Anthropic` of
 * `@anthropic-ai/sdk` or a variant of it (Bedrock, Vertex). Throws `invalid_options`.
 */
export function anthropic(id: string, options: AnthropicOptions = {}): Model {
  const { apiVersion, threads = false, ...defaults } = parseModelOptions(OPTIONS, options, 'anthropic')
  const version = apiVersion ?? (defaults.client === undefined ? (threads ? '2026-10-21' : '2023-06-01') : null)
  if (defaults.temperature !== undefined) rejectTemperature(version)
  const rules = { id, version, defaults, automaticCaching: supportsAutomaticCaching(defaults) }
  return wireModel({
    provider: PROVIDER,
    id,
    options: defaults,
    format: lateFormat(KNOWN, REQUEST, ({ messagesFormat }) => messagesFormat(rules)),
    headers: version === null ? {} : { 'anthropic-version': version },
    defaultBaseUrl: 'https://api.anthropic.com',
    baseUrlVariable: 'ANTHROPIC_BASE_URL',
    apiKeyVariable: 'ANTHROPIC_API_KEY',
    auth: (key) => ({ 'x-api-key': key }),
    clientCall: 'messages.create',
    chain: threads,
    capabilities: { ...modelCapabilities(id), longCacheWrites: requestsLongCache(defaults) },
  })
}

/** According to its options; the settings of a run may request it too. */
function requestsLongCache({ promptCache, extraBody = {} }: ProviderOptions): boolean {
  return (typeof promptCache === 'object' && promptCache.ttl === '1h') || JSON.stringify(extraBody).includes('"1h"')
}

/** Bedrock and Vertex reject a `cache_control` at the top of a request. */
function supportsAutomaticCaching({ client, baseUrl }: ProviderOptions): boolean {
  const url = isObject(client) && 'baseURL' in client ? client['baseURL'] : baseUrl
  return typeof url !== 'string' || !/bedrock|aiplatform/.test(url)
}
