import type { TranscriptEntry } from '#contracts/entry.js'
import type {
  ModelSettings,
  RequestConstants,
  StructuredOutputRequest,
  ToolChoice,
  ToolDefinition,
} from '#core/model-session.js'
import { acceptedSchema } from '#schema/tool-schema.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonSchema, JsonValue } from '#util/json.js'
import type { ProviderOptions } from '../http/options.js'
import type { WireFormat } from '../http/wire-format.js'
import { strictParameters } from '../hosted/tool-definitions.js'
import { checkOwnFields, settingsOf, withCallerFields } from '../wire/request-settings.js'
import type { RequestDefaults } from '../wire/request-settings.js'
import { anthropicServers, anthropicTool, MCP_BETA } from '../hosted/anthropic-tools.js'
import { isHosted } from '../hosted/hosted-definition.js'
import { compactor } from './compaction.js'
import { textBlock, encodeMessages } from './messages.js'
import { hasStrictTools, MAX_TOKENS, MESSAGES, PROVIDER, rejectTemperature, thinkingControl } from './models.js'
import type { AnthropicApiVersion, ThinkingControl } from './models.js'
import { decodeMessage } from './reply.js'
import { MessagesReplyFold } from './stream.js'
import type {
  Tool,
  ToolChoice as WireToolChoice,
  ToolSearchToolBm25_20251119,
} from '@anthropic-ai/sdk/resources/messages'
import { effortFields, isThinking, withSummary } from './thinking.js'

/** The options that all requests to one model share. */
export interface MessagesRequestOptions {
  readonly id: string
  /** Null: that of the client, which is not known. */
  readonly version: AnthropicApiVersion | null
  readonly defaults: RequestDefaults
  /** The host accepts a top-level `cache_control`, which marks the last block of the conversation. */
  readonly automaticCaching: boolean
}

/** The parts of a request that depend on its constants alone. */
interface Settled {
  /** The fields of settings and options; those of the settings take precedence. */
  readonly fields: JsonObject
  readonly thinking: boolean
  /** The request has tools of the provider, and no container of the caller's. */
  readonly continuesContainer: boolean
}

/** The Messages API as functions. */
export function messagesFormat(options: MessagesRequestOptions): WireFormat {
  const control = thinkingControl(options.id)
  const known = new WeakMap<RequestConstants, Settled>()
  const settled = (constants: RequestConstants): Settled => {
    let found = known.get(constants)
    if (found === undefined) known.set(constants, (found = settleThinking(constants, options, control)))
    return found
  }
  return {
    head: (constants) => requestHead(constants, options, settled(constants).fields),
    opening: () => [],
    encode: (entries, constants) =>
      encodeMessages(entries, { thinking: settled(constants).thinking, tools: constants.tools }),
    headers: ({ tools }): Readonly<Record<string, string>> =>
      tools.some(({ hosted }) => hosted?.kind === 'connector') ? { 'anthropic-beta': MCP_BETA } : {},
    tail: ({ streamed, toolChoice, maxOutputTokens, previousResponseId, isChained }) => ({
      ...(isChained === true && { thread: threadField(previousResponseId) }),
      ...(toolChoice !== undefined && { tool_choice: wireToolChoice(toolChoice) }),
      ...(maxOutputTokens !== undefined && limitFields(maxOutputTokens, options.defaults, control)),
      ...(streamed && { stream: true }),
    }),
    carried(transcript, constants) {
      const { fields, continuesContainer } = settled(constants)
      return continuesContainer ? containerFields(transcript(), fields) : {}
    },
    compactor,
    threads: { headers: { 'anthropic-beta': 'message-threads-2026-08-12' }, kept: ['system', 'tools'] },
    fold: (foldOptions) => new MessagesReplyFold(foldOptions),
    decode: decodeMessage,
    // Last: to add members to a spread is slow.
    ...MESSAGES,
  }
}

/** The server keeps the conversation, from this request on or as the one that it continues. */
function threadField(previousMessageId: string | null): JsonObject {
  return previousMessageId === null ? { type: 'create' } : { type: 'continue', previous_message_id: previousMessageId }
}

function settleThinking(
  constants: RequestConstants,
  { defaults }: MessagesRequestOptions,
  control: ThinkingControl,
): Settled {
  const { settings } = constants
  const { reasoningEffort } = settingsOf(settings, defaults)
  const asked = effortFields(control, reasoningEffort, maxTokens(settings, defaults))
  const ofEffort = withSummary(asked, control, defaults.reasoningSummary)
  const fields = [defaults.extraBody, settings.providerOptions?.[PROVIDER]].reduce(withCallerFields, ofEffort)
  const { container, tools } = fields
  const isChosen = typeof container === 'string' || (isObject(container) && typeof container['id'] === 'string')
  const isOfProvider = constants.tools.some(isHosted) || (Array.isArray(tools) && tools.some(isProviderTool))
  const continuesContainer = !isChosen && isOfProvider
  return { fields, thinking: isThinking(control, fields), continuesContainer }
}

function isProviderTool(tool: unknown): boolean {
  return isObject(tool) && (tool['type'] ?? 'custom') !== 'custom'
}

function maxTokens({ maxOutputTokens }: ModelSettings, defaults: RequestDefaults): number {
  return maxOutputTokens ?? defaults.maxOutputTokens ?? MAX_TOKENS
}

/** A lower limit than the settings'. A thinking budget of the options stays below it. */
function limitFields(maxOutputTokens: number, defaults: RequestDefaults, control: ThinkingControl): JsonObject {
  const { thinking } = effortFields(control, defaults.reasoningEffort, maxOutputTokens)
  const isBudget = isObject(thinking) && 'budget_tokens' in thinking
  const budget = isBudget ? withSummary({ thinking }, control, defaults.reasoningSummary) : {}
  return { max_tokens: maxOutputTokens, ...budget }
}

/** All fields of a request except its messages and the fields that differ between requests. */
function requestHead(constants: RequestConstants, options: MessagesRequestOptions, fields: JsonObject): JsonObject {
  const { instructions, tools, settings } = constants
  const { version, defaults, automaticCaching } = options
  const cacheControl = cacheControlOf(defaults.promptCache)
  const { toolChoice = 'auto' } = settings
  const { temperature } = settingsOf(settings, defaults)
  if (temperature !== undefined) rejectTemperature(version)
  const base = {
    model: options.id,
    max_tokens: maxTokens(settings, defaults),
    ...(instructions.trim() !== '' && { system: systemField(instructions, cacheControl) }),
    ...(tools.length > 0 && { tools: wireTools(constants, options.id, cacheControl) }),
    ...anthropicServers(tools, options.id),
    ...(tools.length > 0 && toolChoice !== 'auto' && { tool_choice: wireToolChoice(toolChoice) }),
    ...(cacheControl !== null && automaticCaching && { cache_control: cacheControl }),
    ...(temperature !== undefined && { temperature }),
  }
  checkOwnFields(fields, ['messages', 'stream'])
  return withFormat(withCallerFields(base, fields), constants.structuredOutput)
}

function cacheControlOf(promptCache: ProviderOptions['promptCache'] = true): JsonObject | null {
  if (promptCache === false) return null
  const isLong = typeof promptCache === 'object' && promptCache.ttl === '1h'
  return { type: 'ephemeral', ...(isLong && { ttl: '1h' }) }
}

function systemField(instructions: string, cacheControl: JsonObject | null): string | readonly JsonObject[] {
  return cacheControl === null ? instructions : [{ ...textBlock(instructions), cache_control: cacheControl }]
}

/**
 * The tools in the form of the API, with its own search if there are deferred ones. With `cacheControl`, the last one that is not
 * deferred ends the cached tools: deferred ones are no part of the prompt, and stand behind it.
 */
function wireTools(constants: RequestConstants, model: string, cacheControl: JsonObject | null): readonly JsonObject[] {
  const { tools } = constants
  const canBeStrict = hasStrictTools(model)
  const wired = (tool: ToolDefinition): JsonObject =>
    isHosted(tool) ? anthropicTool(tool, model, constants) : wireTool(tool, canBeStrict)
  const deferred = tools.filter((tool) => tool.deferred === true)
  const listed = deferred.length === 0 ? tools : tools.filter((tool) => tool.deferred !== true)
  const inPrompt: readonly JsonObject[] =
    deferred.length === 0 ? listed.map(wired) : [...listed.map(wired), TOOL_SEARCH]
  return [
    ...inPrompt.map((tool, index) =>
      cacheControl !== null && index === inPrompt.length - 1 ? { ...tool, cache_control: cacheControl } : tool,
    ),
    ...deferred.map((tool) => ({ ...wired(tool), defer_loading: true })),
  ]
}

/** The variant that takes words, not a regular expression. */
const TOOL_SEARCH = {
  type: 'tool_search_tool_bm25_20251119',
  name: 'tool_search_tool_bm25',
} satisfies ToolSearchToolBm25_20251119

function wireTool(tool: ToolDefinition, canBeStrict: boolean): JsonObject {
  const { name, description, parameters, examples } = tool
  const strict = canBeStrict ? strictParameters(tool) : null
  return {
    name,
    ...(description !== '' && { description }),
    input_schema: acceptedSchema(strict ?? parameters, name),
    ...(strict !== null && { strict: true }),
    ...(examples !== undefined && examples.length > 0 && { input_examples: [...examples] }),
  } satisfies Tool
}

function wireToolChoice(choice: ToolChoice): JsonObject {
  if (typeof choice === 'object') return { type: 'tool', name: choice.tool } satisfies WireToolChoice
  return { type: choice === 'required' ? 'any' : choice } satisfies WireToolChoice
}

/** The harness's own format takes precedence over any other. */
function withFormat(fields: JsonObject, request: StructuredOutputRequest | null): JsonObject {
  if (request === null) return fields
  const { output_config: given } = fields
  const format = { type: 'json_schema', schema: outputSchema(request.schema) }
  return { ...fields, output_config: { ...(isObject(given) ? given : {}), format } }
}

/** The field for the container of the conversation. Without it, the provider's tools get a new and empty one. */
function containerFields(transcript: readonly TranscriptEntry[], { container }: JsonObject): JsonObject {
  const id = lastContainer(transcript)
  if (id === null) return {}
  return { container: isObject(container) ? { ...container, id } : id }
}

/** The container of the latest reply that has one, unless it had expired when the last entry joined. */
function lastContainer(transcript: readonly TranscriptEntry[]): string | null {
  const reply = transcript.findLast((entry) => entry.role === 'assistant' && entry.native?.provider === PROVIDER)
  const data = reply?.role === 'assistant' ? reply.native?.data : undefined
  const container = isObject(data) && isObject(data['container']) ? data['container'] : {}
  const { id, expires_at: end } = container
  if (typeof id !== 'string') return null
  const isOver = typeof end === 'string' && Date.parse(end) <= Date.parse(transcript.at(-1)?.at ?? '')
  return isOver ? null : id
}

/** Keywords whose values are schemas by name. */
const NAMED_SCHEMAS = new Set(['properties', '$defs', 'definitions'])

/** Constraints that the API does not enforce, and rejects. */
const UNENFORCED = new Set([
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
])

const FORMATS = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'])

/**
 * A schema as the API enforces it on a reply. Unsupported constraints are added to the description, for the model to
 * follow: the output is checked against the original schema in any case.
 */
export function outputSchema(schema: JsonSchema): JsonObject {
  const kept: [string, JsonValue][] = []
  const rest: string[] = []
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined || key === '$schema' || key === 'description') continue
    if (isEnforced(key, value)) kept.push([key === 'oneOf' ? 'anyOf' : key, innerKeyword(key, value)])
    else rest.push(`${key}: ${JSON.stringify(value)}`)
  }
  const description = describedKeywords(schema['description'], rest)
  return { ...Object.fromEntries(kept), ...(description !== '' && { description }) }
}

function isEnforced(key: string, value: JsonValue): boolean {
  if (key === 'format') return typeof value === 'string' && FORMATS.has(value)
  if (key === 'minItems') return value === 0 || value === 1
  return !UNENFORCED.has(key)
}

function innerKeyword(key: string, value: JsonValue): JsonValue {
  if (NAMED_SCHEMAS.has(key) && isObject(value)) return mapValues(value, schemaOrValue)
  if (key === 'items' || key === 'anyOf' || key === 'oneOf' || key === 'allOf') return schemaOrValue(value)
  return value
}

function schemaOrValue(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(schemaOrValue)
  return isObject(value) ? outputSchema(value) : value
}

function mapValues(object: JsonObject, change: (value: JsonValue) => JsonValue): JsonObject {
  return Object.fromEntries(
    Object.entries(object).flatMap(([key, value]) => (value === undefined ? [] : [[key, change(value)]])),
  )
}

function describedKeywords(description: JsonValue | undefined, rest: readonly string[]): string {
  const text = typeof description === 'string' ? description : ''
  if (rest.length === 0) return text
  return `${text === '' ? '' : `${text}\n\n`}{${rest.join(', ')}}`
}
