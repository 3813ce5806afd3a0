import { createHash } from 'node:crypto'
import { HarnessError } from '../../contracts/errors.js'
import type {
  ModelSettings,
  RequestConstants,
  StructuredOutputRequest,
  ToolChoice,
  ToolDefinition,
} from '../../contracts/model.js'
import { isObject } from '../../util/json.js'
import type { JsonObject, JsonValue } from '../../util/json.js'
import { mergeJson } from '../../util/merge-json.js'
import { inputSchema } from '../../schema/input-schema.js'
import type { ProviderOptions } from '../http/options.js'
import type { TailOptions } from '../http/wire.js'
import { PROVIDER } from './native.js'
import type * as Wire from 'openai/resources/responses/responses'

/** What all requests to one model have in common. */
export interface RequestOptions {
  readonly id: string
  /** Ask for encrypted reasoning, so that it can be sent back. */
  readonly reasoning: boolean
  /** The server keeps the conversation. */
  readonly chain: boolean
  readonly defaults: Pick<
    ProviderOptions,
    'maxOutputTokens' | 'temperature' | 'reasoningEffort' | 'promptCache' | 'extraBody'
  >
}

/** All fields of a request but its input and what differs between requests. */
export function requestHead(constants: RequestConstants, options: RequestOptions): JsonObject {
  const { instructions, tools, settings, structuredOutput } = constants
  const { toolChoice = 'auto' } = settings
  const base: JsonObject = {
    model: options.id,
    ...(instructions !== '' && { instructions }),
    ...(tools.length > 0 && { tools: tools.map(wireTool) }),
    ...(tools.length > 0 && toolChoice !== 'auto' && { tool_choice: wireToolChoice(toolChoice) }),
    store: options.chain,
    ...(options.reasoning && { include: ['reasoning.encrypted_content'] satisfies Wire.ResponseIncludable[] }),
    ...cacheFields(constants, options.defaults.promptCache),
    ...settingFields(settings, options.defaults),
  }
  const ofSettings = settings.providerOptions?.[PROVIDER]
  const merged = [options.defaults.extraBody, ofSettings].reduce(withFields, base)
  return withFormat(checked(merged), structuredOutput)
}

/** What differs between requests. */
export function requestTail({ streamed, toolChoice, maxOutputTokens, previousResponseId }: TailOptions): JsonObject {
  return {
    ...(toolChoice !== undefined && { tool_choice: wireToolChoice(toolChoice) }),
    ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
    ...(previousResponseId !== null && { previous_response_id: previousResponseId }),
    ...(streamed && { stream: true }),
  }
}

function settingFields(settings: ModelSettings, defaults: RequestOptions['defaults']): JsonObject {
  const maxOutputTokens = settings.maxOutputTokens ?? defaults.maxOutputTokens
  const temperature = settings.temperature ?? defaults.temperature
  const reasoningEffort = settings.reasoningEffort ?? defaults.reasoningEffort
  return {
    ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(reasoningEffort !== undefined && { reasoning: { effort: reasoningEffort } }),
  }
}

/**
 * `strict` is said, since the API's default is true, and refuses or rewrites schemas with optional fields. Arguments are
 * checked by the harness anyway.
 */
function wireTool({ name, description, parameters }: ToolDefinition): JsonObject {
  return { type: 'function', name, description, parameters: inputSchema(parameters), strict: false }
}

function wireToolChoice(choice: ToolChoice): JsonValue {
  if (typeof choice === 'string') return choice
  return { type: 'function', name: choice.tool } satisfies Wire.ToolChoiceFunction
}

/**
 * Requests that begin alike are sent to where their beginning is cached, by their key. A cache lasts some minutes at
 * least, and up to a day when `ttl` asks for an hour, which the API has no word for.
 */
function cacheFields(
  { instructions, tools }: RequestConstants,
  promptCache: ProviderOptions['promptCache'] = true,
): JsonObject {
  if (promptCache === false) return {}
  const { key = hashOf([instructions, tools]), ttl } = promptCache === true ? {} : promptCache
  return { prompt_cache_key: key, ...(ttl === '1h' && { prompt_cache_retention: '24h' }) }
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32)
}

/** Objects are merged deeply, other values replaced; what is to be included is added up. */
function withFields(body: JsonObject, fields: JsonObject | undefined): JsonObject {
  const merged = mergeJson(body, fields)
  const include = [...listIn(body), ...listIn(fields)]
  return include.length === 0 ? merged : { ...merged, include: [...new Set(include)] }
}

function listIn(fields: JsonObject | undefined): readonly JsonValue[] {
  const include = fields?.['include']
  return Array.isArray(include) ? (include as readonly JsonValue[]) : []
}

/** The conversation and the form of the reply are the adapter's own. */
function checked(fields: JsonObject): JsonObject {
  const own = ['input', 'stream'].find((name) => name in fields)
  if (own === undefined) return fields
  throw new HarnessError(
    'invalid_options',
    `\`${own}\` cannot be set by \`extraBody\` or \`providerOptions\`: the adapter writes it.`,
  )
}

/** The harness's own format wins over any other (PR-11), and leaves the rest of `text` as it is. */
function withFormat(fields: JsonObject, request: StructuredOutputRequest | null): JsonObject {
  if (request === null) return fields
  const { name, schema, strict, description } = request
  const format = {
    type: 'json_schema',
    name,
    schema,
    strict,
    ...(description !== undefined && { description }),
  } satisfies Wire.ResponseFormatTextJSONSchemaConfig
  const { text } = fields
  return { ...fields, text: { ...(isObject(text) ? text : {}), format } }
}
