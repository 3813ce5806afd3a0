import { HarnessError } from '../../contracts/errors.js'
import type { ModelSettings, RequestConstants } from '../../contracts/model.js'
import type { JsonObject } from '../../util/json.js'
import type { ProviderOptions } from '../http/options.js'
import { digestOf } from './calls.js'

/** The options of a model that settings of a run may override, or that every request contains. */
export type RequestDefaults = Pick<
  ProviderOptions,
  'maxOutputTokens' | 'temperature' | 'reasoningEffort' | 'promptCache' | 'extraBody'
>

type SharedSettings = Pick<ModelSettings, 'maxOutputTokens' | 'temperature' | 'reasoningEffort'>

/** The settings of a run, or else the options of the model. */
export function settingsOf(settings: ModelSettings, defaults: SharedSettings): SharedSettings {
  const maxOutputTokens = settings.maxOutputTokens ?? defaults.maxOutputTokens
  const temperature = settings.temperature ?? defaults.temperature
  const reasoningEffort = settings.reasoningEffort ?? defaults.reasoningEffort
  return {
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(reasoningEffort !== undefined && { reasoningEffort }),
  }
}

/** Throws `invalid_options` if `fields` contain one that the adapter writes: the conversation or the form of the reply. */
export function checkOwnFields(
  fields: JsonObject | undefined,
  names: readonly string[],
  source = '`extraBody` or `providerOptions`',
): void {
  const name = names.find((each) => fields !== undefined && each in fields)
  if (name === undefined) return
  throw new HarnessError('invalid_options', `\`${name}\` cannot be set by ${source}: the adapter writes it.`)
}

/** OpenAI's fields for prompt caching: requests with the same beginning get the same key, and so the same cache. */
export function cacheKeyFields(
  { instructions, tools }: RequestConstants,
  promptCache: ProviderOptions['promptCache'] = true,
): JsonObject {
  if (promptCache === false) return {}
  const { key, ttl } = promptCache === true ? {} : promptCache
  return {
    prompt_cache_key: key ?? digestOf(JSON.stringify([instructions, tools])),
    // The API has only two times: some minutes, and a day.
    ...(ttl === '1h' && { prompt_cache_retention: '24h' }),
  }
}
