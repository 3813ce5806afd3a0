import type { Model, ModelCapabilities } from '../../contracts/model.js'
import type { JsonObject } from '../../util/json.js'
import { jsonObject, list, number, partial, record, string } from '../../util/shape.js'
import type { ProviderOptions } from '../http/options.js'
import { limitsOf } from '../http/request-guard.js'
import { checkEffort, DEFAULT_MAX_RETRIES, parseModelOptions, PROVIDER_OPTIONS } from '../wire/options.js'
import { SessionModel } from '../wire/session.js'
import { aiSdkFormat, checkEffortOption } from './format.js'
import { checkLanguageModel } from './language-model.js'
import type { AiSdkLanguageModel } from './language-model.js'
import { traitsOf } from './traits.js'
import { AiSdkTransport } from './transport.js'

export type { AiSdkLanguageModel } from './language-model.js'

/** The options of every model that apply when the AI SDK's provider sends the requests, and options of the AI SDK. */
export interface AiSdkOptions extends Pick<ProviderOptions, SharedOption> {
  /**
   * The AI SDK's provider options, by its names of providers: `{ openai: { serviceTier: 'flex' } }`. Those of the run's
   * settings (`settings.providerOptions`) take precedence.
   */
  readonly providerOptions?: Readonly<Record<string, JsonObject>>
  /** Settings of the AI SDK without an equivalent in this library. */
  readonly callOptions?: AiSdkCallOptions
}

/** As the AI SDK defines them. A provider ignores those that it does not have. */
export interface AiSdkCallOptions {
  readonly topP?: number
  readonly topK?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  readonly seed?: number
  readonly stopSequences?: readonly string[]
}

type SharedOption =
  | 'headers'
  | 'timeouts'
  | 'maxRetries'
  | 'maxOutputTokens'
  | 'temperature'
  | 'reasoningEffort'
  | 'promptCache'
  | 'capabilities'

const { headers, timeouts, maxRetries, maxOutputTokens, temperature } = PROVIDER_OPTIONS
const { reasoningEffort, promptCache, capabilities } = PROVIDER_OPTIONS

const OPTIONS = partial<AiSdkOptions>({
  ...{ headers, timeouts, maxRetries, maxOutputTokens, temperature, reasoningEffort, promptCache, capabilities },
  providerOptions: record(jsonObject),
  callOptions: partial<AiSdkCallOptions>({
    topP: number(),
    topK: number(),
    presencePenalty: number(),
    frequencyPenalty: number(),
    seed: number(),
    stopSequences: list(string),
  }),
})

/**
 * Any language model of the AI SDK as a model of this library: `fromAiSdk(createGroq()('openai/gpt-oss-120b'))`. Key,
 * base URL and connections are those of the AI SDK's provider; retries, time limits and errors are as with any other
 * model. Its name as a provider is `ai-sdk:` and the AI SDK's name, such as `ai-sdk:anthropic.messages`.
 *
 * OpenAI's server is asked to store nothing (`store: false`), and Anthropic's to cache prompts; `providerOptions` take
 * precedence. Throws `invalid_options` for anything but a language model of a known version.
 */
export function fromAiSdk(languageModel: AiSdkLanguageModel, given: AiSdkOptions = {}): Model {
  const { model, version } = checkLanguageModel(languageModel)
  const options = parseModelOptions(OPTIONS, given, 'fromAiSdk')
  const { provider, modelId } = languageModel
  const traits = traitsOf(provider)
  const calls = { provider, modelId, version, traits, options }
  checkEffortOption(options.reasoningEffort, calls)
  const limit = options.maxOutputTokens === undefined ? {} : { maxOutputTokens: options.maxOutputTokens }
  const own: ModelCapabilities = { permissiveNativeOverride: true, ...traits.capabilities }
  const all: ModelCapabilities = { ...own, ...limit, ...options.capabilities }
  checkEffort(modelId, all, options.reasoningEffort)
  const name = `ai-sdk:${provider}`
  return new SessionModel({
    provider: name,
    model: modelId,
    format: aiSdkFormat(calls, { provider: name, version, traits, inputs: options.capabilities?.inputs }),
    capabilities: all,
    transport: new AiSdkTransport(model, limitsOf(options.timeouts)),
    headers: {},
    maxRetries: options.maxRetries ?? DEFAULT_MAX_RETRIES,
    chain: false,
  })
}
