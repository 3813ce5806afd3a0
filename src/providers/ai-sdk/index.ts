import type { Model, ModelCapabilities } from '#core/model-session.js'
import { late } from '#util/late.js'
import { timeLimitsOf } from '../http/options.js'
import { checkEffort, DEFAULT_MAX_RETRIES, parseModelOptions } from '../wire/options.js'
import { SessionModel } from '../wire/wire-session.js'
import { lateFormat } from '../http/wire-format.js'
import { checkLanguageModel } from './language-model.js'
import type { AiSdkLanguageModel } from './language-model.js'
import { CALLS, checkEffortOption, OPTIONS } from './options.js'
import type { AiSdkOptions } from './options.js'
import { traitsOf } from './provider-traits.js'
import { AiSdkTransport } from './transport.js'

export type { AiSdkLanguageModel } from './language-model.js'
export type { AiSdkCallOptions, AiSdkOptions } from './options.js'

const REQUEST = late(() => import('./request.js'))

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
  const entries = { provider: name, version, traits, inputs: options.capabilities?.inputs }
  return new SessionModel({
    provider: name,
    model: modelId,
    format: lateFormat(CALLS, REQUEST, ({ aiSdkFormat }) => aiSdkFormat(calls, entries)),
    capabilities: all,
    transport: new AiSdkTransport(model, timeLimitsOf(options.timeouts)),
    headers: {},
    maxRetries: options.maxRetries ?? DEFAULT_MAX_RETRIES,
    defaults: { reasoningEffort: options.reasoningEffort },
    chain: false,
  })
}
