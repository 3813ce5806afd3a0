import type { ContentPart } from '#contracts/entry.js'
import type { RequestConstants, StructuredOutputRequest, ToolChoice, ToolDefinition } from '#core/model-session.js'
import { acceptedSchema, inputSchema } from '#schema/tool-schema.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import type { TailOptions, WireFormat } from '../http/wire-format.js'
import { ReplyCallIds } from '../wire/call-ids.js'
import { describedTool, strictParameters } from '../hosted/tool-definitions.js'
import { cacheKeyFields, checkOwnFields, settingsOf, withCallerFields } from '../wire/request-settings.js'
import type { RequestDefaults } from '../wire/request-settings.js'
import { chatHostedFields } from '../hosted/chat-tools.js'
import { isHosted } from '../hosted/hosted-definition.js'
import { decodeReply } from './reply.js'
import { COMPLETIONS } from './dialect.js'
import type { ChatDialect } from './dialect.js'
import { encodeEntries } from './messages.js'
import { ChatFold } from './stream.js'

/** The options that all requests to one model share. */
export interface ChatRequestOptions {
  readonly id: string
  readonly provider: string
  readonly dialect: ChatDialect
  readonly defaults: RequestDefaults
}

/** Chat completions as a wire format. `inputs`: kinds of input other than text; undefined if unknown. */
export function chatFormat(
  options: ChatRequestOptions,
  inputs: readonly ContentPart['type'][] | undefined,
): WireFormat {
  const { provider, dialect } = options
  return {
    head: (constants) => requestHead(constants, options),
    opening: (constants) => openingMessages(constants, options),
    encode: (entries) => encodeEntries(entries, { provider, dialect, inputs }),
    tail: (tail) => requestTail(tail, dialect),
    fold: (fold) => new ChatFold(provider, fold),
    decode(reply, { callIdFor }) {
      const ids = new ReplyCallIds(callIdFor)
      return decodeReply(reply, provider, (id) => ids.take(id))
    },
    // Last: to add members to a spread is slow.
    ...COMPLETIONS,
  }
}

const OWN_FIELDS = ['messages', 'stream', 'stream_options']

/**
 * All fields of a request except its messages and the fields that differ between requests. The settings take precedence
 * over the model's options, and the harness's own format of the reply over both.
 */
function requestHead(constants: RequestConstants, options: ChatRequestOptions): JsonObject {
  const { tools, settings, structuredOutput } = constants
  const { toolChoice = 'auto' } = settings
  const { extraBody } = options.defaults
  const ofSettings = settings.providerOptions?.[options.provider]
  const { all, fields } = wireTools(tools, options)
  const base: JsonObject = {
    model: options.id,
    ...(all.length > 0 && { tools: all }),
    ...fields,
    ...(all.length > 0 && toolChoice !== 'auto' && { tool_choice: wireToolChoice(toolChoice) }),
    ...settingFields(constants, options),
    ...cacheFields(constants, options),
  }
  checkOwnFields(extraBody, OWN_FIELDS, '`extraBody`')
  checkOwnFields(ofSettings, OWN_FIELDS, '`providerOptions`')
  const head = [extraBody, ofSettings].reduce(withCallerFields, base)
  return structuredOutput === null ? head : { ...head, response_format: responseFormat(structuredOutput) }
}

/** The message with the instructions, if there are any. */
function openingMessages({ instructions }: RequestConstants, options: ChatRequestOptions): JsonObject[] {
  if (instructions === '') return []
  const mark = cacheMark(options)
  const content = mark === null ? instructions : [{ type: 'text', text: instructions, cache_control: mark }]
  return [{ role: options.dialect.instructionsRole, content }]
}

function requestTail(
  { streamed, toolChoice, maxOutputTokens }: TailOptions,
  { streamOptions, maxTokensField }: ChatDialect,
): JsonObject {
  return {
    ...(toolChoice !== undefined && { tool_choice: wireToolChoice(toolChoice) }),
    ...(maxOutputTokens !== undefined && { [maxTokensField]: maxOutputTokens }),
    ...(streamed && { stream: true, ...(streamOptions && { stream_options: { include_usage: true } }) }),
  }
}

function wireToolChoice(choice: ToolChoice): JsonValue {
  return typeof choice === 'string' ? choice : { type: 'function', function: { name: choice.tool } }
}

/** The tools, and the fields for hosted ones of the server. */
function wireTools(
  tools: readonly ToolDefinition[],
  { id, provider, dialect }: ChatRequestOptions,
): { readonly all: readonly JsonObject[]; readonly fields?: JsonObject } {
  const own = tools.filter((tool) => !isHosted(tool)).map((tool) => wireTool(tool, dialect))
  if (own.length === tools.length) return { all: own }
  const hosted = chatHostedFields(tools, { provider, model: id })
  return { all: [...own, ...hosted.tools], fields: hosted.fields }
}

function wireTool(tool: ToolDefinition, { anyKeys }: ChatDialect): JsonObject {
  const { name } = tool
  const [description, strict] = [describedTool(tool), strictParameters(tool)]
  const schema = (anyKeys ? inputSchema : acceptedSchema)(strict ?? tool.parameters, name)
  const fields = { name, ...(description !== '' && { description }), parameters: schema }
  return { type: 'function', function: { ...fields, ...(strict !== null && { strict: true }) } }
}

function settingFields({ settings }: RequestConstants, { dialect, defaults }: ChatRequestOptions): JsonObject {
  const { maxOutputTokens, temperature, reasoningEffort } = settingsOf(settings, defaults)
  const effort = reasoningEffort === undefined ? undefined : (dialect.efforts[reasoningEffort] ?? reasoningEffort)
  return {
    ...(maxOutputTokens !== undefined && { [dialect.maxTokensField]: maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(dialect.effortField === 'reasoning'
      ? reasoningField(effort, defaults.reasoningSummary)
      : effort !== undefined && { [dialect.effortField]: effort }),
  }
}

/** Servers with this field show what a model thinks unless they are told not to. */
function reasoningField(
  effort: string | undefined,
  summary: ChatRequestOptions['defaults']['reasoningSummary'],
): JsonObject {
  if (effort === undefined && summary === undefined) return {}
  const shown = summary === 'none' ? { exclude: true } : { ...(summary !== undefined && { summary }) }
  return { reasoning: { ...(effort !== undefined && { effort }), ...shown } }
}

function cacheFields(constants: RequestConstants, options: ChatRequestOptions): JsonObject {
  const mark = cacheMark(options)
  return {
    ...(options.dialect.cacheKeys && cacheKeyFields(constants, options.defaults.promptCache)),
    // At the top level it marks the last message of each request, and so moves along with the conversation.
    ...(mark !== null && { cache_control: mark }),
  }
}

function cacheMark({ dialect, defaults: { promptCache = true } }: ChatRequestOptions): JsonObject | null {
  if (!dialect.cacheMarks || promptCache === false) return null
  const isLong = typeof promptCache === 'object' && promptCache.ttl === '1h'
  return { type: 'ephemeral', ...(isLong && { ttl: '1h' }) }
}

function responseFormat({ name, schema, strict, description }: StructuredOutputRequest): JsonObject {
  return {
    type: 'json_schema',
    json_schema: { name, ...(description !== undefined && { description }), schema, strict },
  }
}
