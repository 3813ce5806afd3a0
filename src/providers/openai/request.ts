import type * as Wire from 'openai/resources/responses/responses'
import type {
  ModelCapabilities,
  RequestConstants,
  StructuredOutputRequest,
  ToolChoice,
  ToolDefinition,
} from '#core/model-session.js'
import { inputSchema } from '#schema/tool-schema.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import type { TailOptions, WireFormat } from '../http/wire-format.js'
import { describedTool, strictParameters } from '../hosted/tool-definitions.js'
import { cacheKeyFields, checkOwnFields, settingsOf, withCallerFields } from '../wire/request-settings.js'
import type { RequestDefaults } from '../wire/request-settings.js'
import { openAiChoice, openAiHostedFields, openAiTool } from '../hosted/openai-tools.js'
import { isHosted } from '../hosted/hosted-definition.js'
import { encodeEntries } from './messages.js'
import { compactor } from './compaction.js'
import { decodeReply } from './reply.js'
import { ResponseFold } from './stream.js'
import { API_INPUTS, isReasoningModel, PROVIDER, RESPONSES } from './models.js'

/** The options of a model that its requests depend on. */
export type FormatOptions = RequestDefaults & {
  readonly capabilities?: ModelCapabilities
  readonly chain?: boolean
  readonly background?: boolean
}

/** The Responses API as pure functions. */
export function responsesFormat(id: string, options: FormatOptions = {}): WireFormat {
  const { reasoningEfforts: efforts, inputs = API_INPUTS } = options.capabilities ?? {}
  const reasoning = efforts === undefined ? isReasoningModel(id) : efforts.length > 0
  // An unknown model may reason, so its reasoning is sent back.
  const encode = { reasoning: reasoning !== false, inputs: API_INPUTS.filter((kind) => inputs.includes(kind)) }
  return {
    head: (constants) =>
      requestHead(constants, { id, reasoning: reasoning === true, mayReason: reasoning !== false, options }),
    opening: () => [],
    encode: (entries) => encodeEntries(entries, encode),
    tail: requestTail,
    compactor,
    fold: (foldOptions) => new ResponseFold(foldOptions),
    decode: decodeReply,
    // Last: to add members to a spread is slow.
    ...RESPONSES,
  }
}

interface HeadRules {
  readonly id: string
  /** Encrypted reasoning is requested, so that it can be sent back. */
  readonly reasoning: boolean
  /** Its name does not show that it cannot reason. */
  readonly mayReason: boolean
  readonly options: FormatOptions
}

/** All fields of a request except its input and the fields that differ between requests. */
function requestHead(constants: RequestConstants, { id, reasoning, mayReason, options }: HeadRules): JsonObject {
  const { instructions, tools, settings, structuredOutput } = constants
  const { toolChoice = 'auto' } = settings
  const { maxOutputTokens, temperature, reasoningEffort } = settingsOf(settings, options)
  const base: JsonObject = {
    model: id,
    ...(instructions !== '' && { instructions }),
    ...(tools.length > 0 && { tools: wireTools(tools, id) }),
    ...(tools.length > 0 && toolChoice !== 'auto' && { tool_choice: wireToolChoice(toolChoice, tools) }),
    ...(options.background === true && { background: true }),
    store: options.background === true || (options.chain ?? false),
    ...(reasoning && { include: ['reasoning.encrypted_content'] satisfies Wire.ResponseIncludable[] }),
    ...cacheKeyFields(constants, options.promptCache),
    ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...reasoningField(reasoningEffort, mayReason ? options.reasoningSummary : undefined),
  }
  const hosted = tools.some(isHosted) ? [openAiHostedFields(tools)] : []
  const fields = [...hosted, options.extraBody, settings.providerOptions?.[PROVIDER]].reduce(withFields, base)
  checkOwnFields(fields, ['input', 'stream'])
  return withFormat(fields, structuredOutput)
}

/** The fields that differ between requests. */
function requestTail(
  { streamed, toolChoice, maxOutputTokens, previousResponseId }: TailOptions,
  { tools }: Pick<RequestConstants, 'tools'>,
): JsonObject {
  return {
    ...(toolChoice !== undefined && { tool_choice: wireToolChoice(toolChoice, tools) }),
    ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
    ...(previousResponseId !== null && { previous_response_id: previousResponseId }),
    ...(streamed && { stream: true }),
  }
}

function reasoningField(effort: string | undefined, summary = 'none'): JsonObject {
  if (effort === undefined && summary === 'none') return {}
  return { reasoning: { ...(effort !== undefined && { effort }), ...(summary !== 'none' && { summary }) } }
}

/** The tools in the form of the API, with its own search if there are deferred ones. */
function wireTools(tools: readonly ToolDefinition[], id: string): readonly JsonObject[] {
  const wired = tools.map((tool) => wireTool(tool, id))
  return tools.some(({ deferred }) => deferred === true) ? [...wired, TOOL_SEARCH] : wired
}

const TOOL_SEARCH = { type: 'tool_search' } satisfies Wire.ToolSearchTool

/**
 * `strict` is always sent: the API's default is true, which rejects or rewrites schemas with optional fields. The harness
 * checks arguments anyway.
 */
function wireTool(tool: ToolDefinition, id: string): JsonObject {
  if (isHosted(tool)) return openAiTool(tool, id)
  const { name, parameters, deferred } = tool
  const strict = strictParameters(tool)
  return {
    ...{ type: 'function', name, description: describedTool(tool) },
    parameters: inputSchema(strict ?? parameters, name),
    strict: strict !== null,
    ...(deferred === true && { defer_loading: true }),
  }
}

function wireToolChoice(choice: ToolChoice, tools: readonly ToolDefinition[]): JsonValue {
  if (typeof choice === 'string') return choice
  const hosted = openAiChoice(tools, choice.tool)
  if (hosted !== undefined) return hosted
  return { type: 'function', name: choice.tool } satisfies Wire.ToolChoiceFunction
}

/** The lists of `include` are joined, too. */
function withFields(body: JsonObject, fields: JsonObject | undefined): JsonObject {
  const merged = withCallerFields(body, fields)
  const include = [...includeList(body), ...includeList(fields)]
  return include.length === 0 ? merged : { ...merged, include: [...new Set(include)] }
}

function includeList(fields: JsonObject | undefined): readonly JsonValue[] {
  const include = fields?.['include']
  return Array.isArray(include) ? (include as readonly JsonValue[]) : []
}

/** The harness's own format takes precedence over any other (PR-11). The rest of `text` is kept. */
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
