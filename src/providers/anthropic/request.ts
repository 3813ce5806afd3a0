import { HarnessError } from '../../contracts/errors.js'
import type { ModelSettings, RequestConstants, StructuredOutputRequest } from '../../contracts/model.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import { mergeJson } from '../../util/merge-json.js'
import type { ProviderOptions } from '../http/options.js'
import { textBlock } from './content.js'
import { outputSchema } from './output-schema.js'
import { PROVIDER } from './provider.js'
import { effortFields } from './thinking.js'
import { wireToolChoice, wireTools } from './tools.js'

/** `2023-06-01` has `temperature`; `2026-10-21` refuses it. */
export type AnthropicApiVersion = '2023-06-01' | '2026-10-21'

/** What all requests to one model have in common. */
export interface RequestOptions {
  readonly id: string
  readonly version: AnthropicApiVersion
  readonly defaults: Pick<
    ProviderOptions,
    'maxOutputTokens' | 'temperature' | 'reasoningEffort' | 'promptCache' | 'extraBody'
  >
  /** Whether the host takes a top-level `cache_control`, which marks the last block of the conversation. */
  readonly automaticCaching: boolean
}

const MAX_TOKENS = 16_384

/** All fields of a request but its messages and what differs between requests. */
export function requestHead(constants: RequestConstants, options: RequestOptions): JsonObject {
  const { instructions, tools, settings } = constants
  const cacheControl = cacheControlOf(options.defaults.promptCache)
  const { toolChoice = 'auto' } = settings
  const base = {
    model: options.id,
    max_tokens: maxTokens(settings, options),
    ...(instructions !== '' && { system: system(instructions, cacheControl) }),
    ...(tools.length > 0 && { tools: wireTools(tools, cacheControl) }),
    ...(tools.length > 0 && toolChoice !== 'auto' && { tool_choice: wireToolChoice(toolChoice) }),
    ...(cacheControl !== null && options.automaticCaching && { cache_control: cacheControl }),
    ...temperature(settings, options),
  }
  return withFormat(checked(mergeJson(base, settingFields(constants, options))), constants.structuredOutput)
}

/** The fields that settings and options ask for by themselves; those of the settings win. */
export function settingFields({ settings }: RequestConstants, options: RequestOptions): JsonObject {
  const effort = settings.reasoningEffort ?? options.defaults.reasoningEffort
  const fields = effortFields(options.id, effort, maxTokens(settings, options))
  return mergeJson(mergeJson(fields, options.defaults.extraBody), settings.providerOptions?.[PROVIDER])
}

/** A lower cap than the settings'; a number of tokens to think that the options ask for stays below it. */
export function cappedFields(maxOutputTokens: number, { id, defaults }: RequestOptions): JsonObject {
  const { thinking } = effortFields(id, defaults.reasoningEffort, maxOutputTokens)
  const isBudget = isObject(thinking) && 'budget_tokens' in thinking
  return { max_tokens: maxOutputTokens, ...(isBudget && { thinking }) }
}

function maxTokens({ maxOutputTokens }: ModelSettings, { defaults }: RequestOptions): number {
  return maxOutputTokens ?? defaults.maxOutputTokens ?? MAX_TOKENS
}

function temperature(settings: ModelSettings, { defaults, version }: RequestOptions): JsonObject {
  const temperature = settings.temperature ?? defaults.temperature
  if (temperature === undefined) return {}
  refuseTemperature(version)
  return { temperature }
}

/** Throws `invalid_options` where the API has no `temperature`. */
export function refuseTemperature(version: AnthropicApiVersion): void {
  if (version === '2023-06-01') return
  throw new HarnessError(
    'invalid_options',
    `Version ${version} of Anthropic's API takes no \`temperature\`: leave it out, or choose \`apiVersion: '2023-06-01'\`.`,
  )
}

function cacheControlOf(promptCache: ProviderOptions['promptCache'] = true): JsonObject | null {
  if (promptCache === false) return null
  const isLong = typeof promptCache === 'object' && promptCache.ttl === '1h'
  return { type: 'ephemeral', ...(isLong && { ttl: '1h' }) }
}

function system(instructions: string, cacheControl: JsonObject | null): string | readonly JsonObject[] {
  return cacheControl === null ? instructions : [{ ...textBlock(instructions), cache_control: cacheControl }]
}

/** The conversation and the form of the reply are the adapter's own. */
function checked(fields: JsonObject): JsonObject {
  const own = ['messages', 'stream'].find((name) => name in fields)
  if (own === undefined) return fields
  throw new HarnessError(
    'invalid_options',
    `\`${own}\` cannot be set by \`extraBody\` or \`providerOptions\`: the adapter writes it.`,
  )
}

/** The harness's own format wins over any other. */
function withFormat(fields: JsonObject, request: StructuredOutputRequest | null): JsonObject {
  if (request === null) return fields
  const { output_config: given } = fields
  const format = { type: 'json_schema', schema: outputSchema(request.schema) }
  return { ...fields, output_config: { ...(isObject(given) ? given : {}), format } }
}
