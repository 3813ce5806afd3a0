import { invalidOptions } from '#contracts/parse.js'
import type { ReasoningEffort } from '#core/model-session.js'
import type { JsonObject } from '#util/json.js'
import { jsonObject, list, number, partial, record, string } from '#util/validate.js'
import type { ProviderOptions } from '../http/options.js'
import type { KnownFormat } from '../http/wire-format.js'
import { PROVIDER_OPTIONS } from '../wire/options.js'
import type { Version } from './language-model.js'
import type { ProviderTraits } from './provider-traits.js'

/** The options of every model that apply when the AI SDK's provider sends the requests, and options of the AI SDK. */
export interface AiSdkOptions extends Pick<ProviderOptions, SharedOption> {
  /**
   * The AI SDK's provider options, by its names of providers: `{ openai: { serviceTier: 'flex' } }`. Those of the run's
   * settings (`settings.providerOptions`) take precedence.
   */
  readonly providerOptions?: Readonly<Record<string, JsonObject>> | undefined
  /** Settings of the AI SDK without an equivalent in this library. */
  readonly callOptions?: AiSdkCallOptions | undefined
}

/** As the AI SDK defines them. A provider ignores those that it does not have. */
export interface AiSdkCallOptions {
  readonly topP?: number | undefined
  readonly topK?: number | undefined
  readonly presencePenalty?: number | undefined
  readonly frequencyPenalty?: number | undefined
  readonly seed?: number | undefined
  readonly stopSequences?: readonly string[] | undefined
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

export const OPTIONS = partial<AiSdkOptions>({
  ...{ headers, timeouts, maxRetries, maxOutputTokens, temperature, reasoningEffort, promptCache, capabilities },
  providerOptions: record(jsonObject),
  callOptions: partial({
    topP: number(),
    topK: number(),
    presencePenalty: number(),
    frequencyPenalty: number(),
    seed: number(),
    stopSequences: list(string),
  }),
})

/** What is known of the calls of every language model before their format is loaded. */
export const CALLS = { path: '', conversationField: 'prompt' } satisfies KnownFormat

/** The options that all calls of one model share. */
export interface CallRules {
  /** As the language model names it. */
  readonly provider: string
  readonly modelId: string
  readonly version: Version
  readonly traits: ProviderTraits
  readonly options: AiSdkOptions
}

/** Throws `invalid_options` if the provider's way to set an effort is unknown. */
export function checkEffortOption(effort: ReasoningEffort | undefined, { version, traits, provider }: CallRules): void {
  if (effort === undefined || version.takesReasoning || traits.effort !== undefined) return
  const name = provider.replace(/\..*$/s, '')
  throw invalidOptions(
    `\`reasoningEffort\` is not supported for \`${provider}\` of the AI SDK: set the provider's own option, as \`providerOptions: { '${name}': { … } }\`.`,
  )
}
