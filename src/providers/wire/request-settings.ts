import { HarnessError } from '#contracts/errors.js'
import type { ModelSettings, RequestConstants } from '#core/model-session.js'
import { firstDifference } from '#util/first-difference.js'
import { isObject, mergeJson } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import type { ProviderOptions } from '../http/options.js'
import { shortDigest } from './call-ids.js'

/** The options of a model that settings of a run may override, or that every request contains. */
export type RequestDefaults = Pick<
  ProviderOptions,
  'maxOutputTokens' | 'temperature' | 'reasoningEffort' | 'reasoningSummary' | 'promptCache' | 'extraBody'
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

/** True if requests begin the same with both: what was made of the one serves the other. */
export function areSameConstants(one: RequestConstants, other: RequestConstants): boolean {
  if (one.instructions !== other.instructions || one.tools.length !== other.tools.length) return false
  if (one.structuredOutput !== other.structuredOutput) return false
  if (one.tools.some((tool, index) => tool !== other.tools[index])) return false
  return firstDifference(one.settings, other.settings) === undefined
}

/** A reply of so few tokens arrives as a whole within the time to its first byte, even from a slow model. */
const SHORT_REPLY = 4096
const LONG_REPLY = 16_384

/** The limits of a reply, by the names of the APIs. */
const LIMITS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens', 'maxOutputTokens']

/**
 * True if a reply may take minutes: the model was asked to reason, or may write a long answer. Such a request is streamed
 * although nobody reads its deltas, so that it is not given up after the provider has done the work. `fields` are those of
 * the request, with the caller's.
 */
export function mayTakeLong(fields: JsonObject, effort: ModelSettings['reasoningEffort']): boolean {
  const { generationConfig: settings = fields } = fields
  if (!isObject(settings)) return false
  const limit = LIMITS.map((name) => settings[name]).find((value) => typeof value === 'number') ?? null
  if (limit !== null && limit <= SHORT_REPLY) return false
  const { thinking, reasoning, reasoning_effort: word, thinkingConfig } = settings
  return (limit !== null && limit > LONG_REPLY) || isOn(thinkingConfig ?? thinking ?? reasoning ?? word ?? effort)
}

function isOn(reasoning: unknown): boolean {
  if (!isObject(reasoning)) return reasoning !== undefined && reasoning !== 'none' && reasoning !== 'minimal'
  const isOff = reasoning['enabled'] === false || reasoning['type'] === 'disabled' || reasoning['thinkingBudget'] === 0
  return !isOff && isOn(reasoning['effort'] ?? 'on')
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

/**
 * `body` with the fields of a caller: objects are merged deeply, tools are added, other values are replaced. A tool with
 * the name of one in `body` replaces that one. Throws `invalid_options` for `tools` that are not a list.
 */
export function withCallerFields(body: JsonObject, fields: JsonObject | undefined): JsonObject {
  const merged = mergeJson(body, fields)
  const added = fields?.['tools']
  if (added === undefined) return merged
  if (!isJsonList(added)) {
    throw new HarnessError('invalid_options', 'Expected `tools` of `extraBody` or `providerOptions` to be a list.')
  }
  const known = body['tools']
  return { ...merged, tools: withTools(isJsonList(known) ? known : [], added) }
}

function withTools(known: readonly JsonValue[], added: readonly JsonValue[]): readonly JsonValue[] {
  const replacements = new Map(
    added.flatMap((tool) => (wireToolName(tool) === null ? [] : [[wireToolName(tool), tool]])),
  )
  const kept = known.map((tool) => replacements.get(wireToolName(tool)) ?? tool)
  return [...kept, ...added.filter((tool) => !kept.includes(tool))]
}

/** The name of a tool, in the form of any API; null for a tool of the provider without one. */
function wireToolName(tool: JsonValue): string | null {
  if (!isObject(tool)) return null
  const { name = isObject(tool['function']) ? tool['function']['name'] : undefined } = tool
  return typeof name === 'string' ? name : null
}

function isJsonList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value)
}

/** OpenAI's fields for prompt caching: requests with the same beginning get the same key, and so the same cache. */
export function cacheKeyFields(
  { instructions, tools }: RequestConstants,
  promptCache: ProviderOptions['promptCache'] = true,
): JsonObject {
  if (promptCache === false) return {}
  const { key, ttl } = promptCache === true ? {} : promptCache
  return {
    prompt_cache_key: key ?? shortDigest(JSON.stringify([instructions, tools])),
    // The API has only two times: some minutes, and a day.
    ...(ttl === '1h' && { prompt_cache_retention: '24h' }),
  }
}
