import { HarnessError } from '../../contracts/errors.js'
import type { Model, ModelCapabilities, ModelSession } from '../../contracts/model.js'
import { checkEffort, parseModelOptions } from '../wire/options.js'
import { limitsOf } from '../http/request-guard.js'
import { checkLanguageModel } from './language-model.js'
import type { AiSdkLanguageModel } from './language-model.js'
import { AI_SDK_OPTIONS } from './options.js'
import type { AiSdkOptions } from './options.js'
import { checkEffortOption } from './request.js'
import { AiSdkSession } from './session.js'
import type { AiSdkSessionOptions } from './session.js'
import { traitsOf } from './traits.js'

export type { AiSdkLanguageModel } from './language-model.js'
export type { AiSdkCallOptions, AiSdkOptions } from './options.js'

/**
 * Any language model of the AI SDK as a model of this library: `fromAiSdk(createGroq()('openai/gpt-oss-120b'))`. Key,
 * base URL and connections are those of the AI SDK's provider; retries, time limits and errors are as with any other
 * model. Its name as a provider is `ai-sdk:` and what the AI SDK calls it, such as `ai-sdk:anthropic.messages`.
 *
 * OpenAI's server is asked to keep nothing (`store: false`), and Anthropic's to cache prompts; `providerOptions` win.
 * Throws `invalid_options` for what is no language model of a version that is known.
 */
export function fromAiSdk(languageModel: AiSdkLanguageModel, given: AiSdkOptions = {}): Model {
  const { model, version } = checkLanguageModel(languageModel)
  const options = parseModelOptions(AI_SDK_OPTIONS, given, 'fromAiSdk')
  const { provider, modelId } = languageModel
  const traits = traitsOf(provider)
  const callRules = { provider, modelId, version, traits, options }
  checkEffortOption(options.reasoningEffort, callRules)
  const name = `ai-sdk:${provider}`
  const capabilities: ModelCapabilities = {
    permissiveNativeOverride: true,
    ...traits.capabilities,
    ...options.capabilities,
  }
  checkEffort(modelId, capabilities, options.reasoningEffort)
  const { maxRetries = DEFAULT_MAX_RETRIES, timeouts } = options
  return new AiSdkModel(name, modelId, {
    model,
    capabilities,
    limits: limitsOf(timeouts),
    maxRetries,
    callRules,
    encodeRules: { provider: name, version, traits, inputs: options.capabilities?.inputs },
  })
}

/** Repetitions of a failed request, where nothing else is said. */
const DEFAULT_MAX_RETRIES = 2

class AiSdkModel implements Model {
  readonly provider: string
  readonly id: string
  readonly capabilities: ModelCapabilities
  readonly #session: AiSdkSessionOptions
  #isClosed = false

  constructor(provider: string, id: string, session: AiSdkSessionOptions) {
    this.provider = provider
    this.id = id
    this.capabilities = session.capabilities
    this.#session = session
  }

  openSession(): ModelSession {
    if (this.#isClosed) throw new HarnessError('closed', `The model \`${this.id}\` is closed.`)
    return new AiSdkSession(this.#session)
  }

  /** The connections are the AI SDK's provider's. */
  async close(): Promise<void> {
    this.#isClosed = true
  }
}
