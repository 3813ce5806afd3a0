import { createHash } from 'node:crypto'
import { HarnessError } from '../../contracts/errors.js'
import type { RequestConstants, StructuredOutputRequest, ToolChoice, ToolDefinition } from '../../contracts/model.js'
import type { JsonObject, JsonValue } from '../../util/json.js'
import { mergeJson } from '../../util/merge-json.js'
import { inputSchema } from '../../schema/input-schema.js'
import type { ProviderOptions } from '../http/options.js'
import type { ChatDialect } from './dialect.js'

/** What all requests to one model have in common. */
export interface RequestOptions {
  readonly id: string
  readonly provider: string
  readonly dialect: ChatDialect
  readonly defaults: Pick<
    ProviderOptions,
    'maxOutputTokens' | 'temperature' | 'reasoningEffort' | 'promptCache' | 'extraBody'
  >
}

/**
 * All fields of a request but its messages and what differs between requests. Those of the settings win over those of
 * the factory's options, and the harness's own format of the reply over all.
 */
export function requestHead(constants: RequestConstants, options: RequestOptions): JsonObject {
  const { tools, settings, structuredOutput } = constants
  const { toolChoice = 'auto' } = settings
  const base = {
    model: options.id,
    ...(tools.length > 0 && { tools: tools.map(wireTool) }),
    ...(tools.length > 0 && toolChoice !== 'auto' && { tool_choice: wireToolChoice(toolChoice) }),
    ...settingFields(constants, options),
    ...cacheFields(constants, options),
  }
  const asked = mergeJson(base, ownFields('extraBody', options.defaults.extraBody))
  const head = mergeJson(asked, ownFields('providerOptions', settings.providerOptions?.[options.provider]))
  return structuredOutput === null ? head : { ...head, response_format: responseFormat(structuredOutput) }
}

/** The message that holds the instructions, where there are any. */
export function openingMessages({ instructions }: RequestConstants, options: RequestOptions): JsonObject[] {
  if (instructions === '') return []
  const mark = cacheMark(options)
  const content = mark === null ? instructions : [{ type: 'text', text: instructions, cache_control: mark }]
  return [{ role: options.dialect.instructionsRole, content }]
}

export function wireToolChoice(choice: ToolChoice): JsonValue {
  return typeof choice === 'string' ? choice : { type: 'function', function: { name: choice.tool } }
}

function wireTool({ name, description, parameters }: ToolDefinition): JsonObject {
  return {
    type: 'function',
    function: { name, ...(description !== '' && { description }), parameters: inputSchema(parameters) },
  }
}

function settingFields({ settings }: RequestConstants, { dialect, defaults }: RequestOptions): JsonObject {
  const maxOutputTokens = settings.maxOutputTokens ?? defaults.maxOutputTokens
  const temperature = settings.temperature ?? defaults.temperature
  const reasoningEffort = settings.reasoningEffort ?? defaults.reasoningEffort
  const effort = reasoningEffort === undefined ? undefined : (dialect.efforts[reasoningEffort] ?? reasoningEffort)
  return {
    ...(maxOutputTokens !== undefined && { [dialect.maxTokensField]: maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(effort !== undefined && { [dialect.effortField]: dialect.effortField === 'reasoning' ? { effort } : effort }),
  }
}

function cacheFields({ instructions, tools }: RequestConstants, options: RequestOptions): JsonObject {
  const { promptCache = true } = options.defaults
  if (promptCache === false) return {}
  const { ttl, key } = promptCache === true ? {} : promptCache
  const mark = cacheMark(options)
  return {
    ...(options.dialect.cacheKeys && { prompt_cache_key: key ?? hashOf([instructions, tools]) }),
    // The API's word for a longer time than some minutes.
    ...(options.dialect.cacheKeys && ttl === '1h' && { prompt_cache_retention: '24h' }),
    // Beside the other fields it marks the last message of each request, and so moves along with the conversation.
    ...(mark !== null && { cache_control: mark }),
  }
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32)
}

function cacheMark({ dialect, defaults: { promptCache = true } }: RequestOptions): JsonObject | null {
  if (!dialect.cacheMarks || promptCache === false) return null
  const isLong = typeof promptCache === 'object' && promptCache.ttl === '1h'
  return { type: 'ephemeral', ...(isLong && { ttl: '1h' }) }
}

/** The conversation and the form of the reply are the adapter's own. */
function ownFields(option: string, fields: JsonObject | undefined): JsonObject | undefined {
  const own = ['messages', 'stream', 'stream_options'].find((name) => fields !== undefined && name in fields)
  if (own === undefined) return fields
  throw new HarnessError('invalid_options', `\`${own}\` cannot be set by \`${option}\`: the adapter writes it.`)
}

function responseFormat({ name, schema, strict, description }: StructuredOutputRequest): JsonObject {
  return {
    type: 'json_schema',
    json_schema: { name, ...(description !== undefined && { description }), schema, strict },
  }
}
