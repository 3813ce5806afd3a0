import type { Tool, ToolChoice as WireToolChoice } from '@anthropic-ai/sdk/resources/messages'
import type { TranscriptEntry } from '../../contracts/entry.js'
import { HarnessError } from '../../contracts/errors.js'
import type {
  ModelSettings,
  RequestConstants,
  StructuredOutputRequest,
  ToolChoice,
  ToolDefinition,
} from '../../contracts/model.js'
import { acceptedSchema } from '../../schema/input-schema.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import type { ProviderOptions } from '../http/options.js'
import type { WireFormat } from '../http/wire.js'
import { checkOwnFields, settingsOf, withCallerFields } from '../wire/settings.js'
import type { RequestDefaults } from '../wire/settings.js'
import { compactor } from './compaction.js'
import { textBlock } from './content.js'
import { decodeMessage } from './decode.js'
import { MessageFold } from './fold.js'
import { encodeMessages } from './messages.js'
import { effortFields, isThinking, PROVIDER, thinkingControl } from './models.js'
import type { ThinkingControl } from './models.js'
import { outputSchema } from './output-schema.js'

/** `2023-06-01` has `temperature`; `2026-10-21` rejects it. */
export type AnthropicApiVersion = '2023-06-01' | '2026-10-21'

/** The options that all requests to one model share. */
export interface RequestOptions {
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
export function messagesFormat(options: RequestOptions): WireFormat {
  const control = thinkingControl(options.id)
  const known = new WeakMap<RequestConstants, Settled>()
  const settled = (constants: RequestConstants): Settled => {
    let found = known.get(constants)
    if (found === undefined) known.set(constants, (found = settle(constants, options, control)))
    return found
  }
  return {
    path: '/v1/messages',
    conversationField: 'messages',
    head: (constants) => requestHead(constants, options, settled(constants).fields),
    opening: () => [],
    encode: (entries, constants) => encodeMessages(entries, settled(constants).thinking),
    tail: ({ streamed, toolChoice, maxOutputTokens }) => ({
      ...(toolChoice !== undefined && { tool_choice: wireToolChoice(toolChoice) }),
      ...(maxOutputTokens !== undefined && limitFields(maxOutputTokens, options.defaults, control)),
      ...(streamed && { stream: true }),
    }),
    carried(transcript, constants) {
      const { fields, continuesContainer } = settled(constants)
      return continuesContainer ? containerFields(transcript, fields) : {}
    },
    counter: {
      path: '/v1/messages/count_tokens',
      fields: ['model', 'messages', 'system', 'tools', 'tool_choice', 'thinking', 'output_config', 'mcp_servers'],
    },
    compactor,
    fold: (foldOptions) => new MessageFold(foldOptions),
    decode: decodeMessage,
  }
}

function settle({ settings }: RequestConstants, { defaults }: RequestOptions, control: ThinkingControl): Settled {
  const { reasoningEffort } = settingsOf(settings, defaults)
  const ofEffort = effortFields(control, reasoningEffort, maxTokens(settings, defaults))
  const fields = [defaults.extraBody, settings.providerOptions?.[PROVIDER]].reduce(withCallerFields, ofEffort)
  const { container, tools } = fields
  const isChosen = typeof container === 'string' || (isObject(container) && typeof container['id'] === 'string')
  const continuesContainer = !isChosen && Array.isArray(tools) && tools.some(isProviderTool)
  return { fields, thinking: isThinking(control, fields), continuesContainer }
}

function isProviderTool(tool: unknown): boolean {
  return isObject(tool) && (tool['type'] ?? 'custom') !== 'custom'
}

const MAX_TOKENS = 16_384

function maxTokens({ maxOutputTokens }: ModelSettings, defaults: RequestDefaults): number {
  return maxOutputTokens ?? defaults.maxOutputTokens ?? MAX_TOKENS
}

/** A lower limit than the settings'. A thinking budget of the options stays below it. */
function limitFields(maxOutputTokens: number, defaults: RequestDefaults, control: ThinkingControl): JsonObject {
  const { thinking } = effortFields(control, defaults.reasoningEffort, maxOutputTokens)
  const isBudget = isObject(thinking) && 'budget_tokens' in thinking
  return { max_tokens: maxOutputTokens, ...(isBudget && { thinking }) }
}

/** All fields of a request except its messages and the fields that differ between requests. */
function requestHead(constants: RequestConstants, options: RequestOptions, fields: JsonObject): JsonObject {
  const { instructions, tools, settings } = constants
  const { version, defaults, automaticCaching } = options
  const cacheControl = cacheControlOf(defaults.promptCache)
  const { toolChoice = 'auto' } = settings
  const { temperature } = settingsOf(settings, defaults)
  if (temperature !== undefined) rejectTemperature(version)
  const base = {
    model: options.id,
    max_tokens: maxTokens(settings, defaults),
    ...(instructions !== '' && { system: system(instructions, cacheControl) }),
    ...(tools.length > 0 && { tools: wireTools(tools, cacheControl) }),
    ...(tools.length > 0 && toolChoice !== 'auto' && { tool_choice: wireToolChoice(toolChoice) }),
    ...(cacheControl !== null && automaticCaching && { cache_control: cacheControl }),
    ...(temperature !== undefined && { temperature }),
  }
  checkOwnFields(fields, ['messages', 'stream'])
  return withFormat(withCallerFields(base, fields), constants.structuredOutput)
}

/** Throws `invalid_options` if the API has no `temperature`. */
export function rejectTemperature(version: AnthropicApiVersion | null): void {
  if (version !== '2026-10-21') return
  throw new HarnessError(
    'invalid_options',
    `Version ${version} of Anthropic's API does not support \`temperature\`: omit it, or choose \`apiVersion: '2023-06-01'\`.`,
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

/** The tools in the form of the API. With `cacheControl`, the last one ends the cached tools. */
function wireTools(tools: readonly ToolDefinition[], cacheControl: JsonObject | null): readonly JsonObject[] {
  return tools.map(({ name, description, parameters }, index) => ({
    ...({
      name,
      ...(description !== '' && { description }),
      input_schema: acceptedSchema(parameters, name),
    } satisfies Tool),
    ...(cacheControl !== null && index === tools.length - 1 && { cache_control: cacheControl }),
  }))
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
