import type { ReasoningEffort, RequestConstants, ToolChoice, ToolDefinition } from '#core/model-session.js'
import { acceptedSchema, inputSchema } from '#schema/tool-schema.js'
import { isObject, mergeJson } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import type { WireFormat } from '../http/wire-format.js'
import { without } from '../wire/wire-fields.js'
import { describedTool } from '../hosted/tool-definitions.js'
import { settingsOf } from '../wire/request-settings.js'
import { aiSdkTool } from '../hosted/ai-sdk-tools.js'
import { isHosted } from '../hosted/hosted-definition.js'
import { decodeReply, generatedReply } from './reply.js'
import { encodeEntries } from './messages.js'
import type { EncodeRules } from './messages.js'
import { StreamFold } from './stream.js'
import { CALLS, checkEffortOption } from './options.js'
import type { AiSdkOptions, CallRules } from './options.js'
import type { PromptCache, ProviderTraits } from './provider-traits.js'

/** The calls of a language model as a wire format: the fields of a call are those of a request. */
export function aiSdkFormat(calls: CallRules, entries: EncodeRules): WireFormat {
  return {
    head: (constants) => callSettings(constants, calls),
    opening: ({ instructions }) => (instructions.trim() === '' ? [] : [{ role: 'system', content: instructions }]),
    encode: (added) => encodeEntries(added, entries),
    tail: ({ toolChoice, maxOutputTokens }) => ({
      ...(toolChoice !== undefined && { toolChoice: aiSdkToolChoice(toolChoice) }),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    }),
    fold(options) {
      const fold = new StreamFold(options)
      return { add: ({ data }) => fold.add(data), end: () => decodeReply(fold.end(), entries) }
    },
    decode: (result, options) => decodeReply(generatedReply(result, options), entries),
    // Last: to add members to a spread is slow.
    ...CALLS,
  }
}

/** The fields that all calls of a session share, except their messages. Empty fields are omitted. */
function callSettings(constants: RequestConstants, rules: CallRules): JsonObject {
  const { tools, settings, structuredOutput } = constants
  const { options, version } = rules
  const { toolChoice = 'auto' } = settings
  checkEffortOption(settings.reasoningEffort, rules)
  const { reasoningEffort: effort, ...limits } = settingsOf(settings, options)
  const providerOptions = allProviderOptions(constants, effort, rules)
  return {
    ...options.callOptions,
    ...limits,
    ...(effort !== undefined && version.takesReasoning && { reasoning: effort }),
    ...(tools.length > 0 && { tools: tools.map((tool) => functionTool(tool, rules)) }),
    ...(tools.length > 0 && toolChoice !== 'auto' && { toolChoice: aiSdkToolChoice(toolChoice) }),
    ...(structuredOutput !== null && { responseFormat: responseFormat(structuredOutput) }),
    ...(options.headers !== undefined && { headers: options.headers }),
    ...(Object.keys(providerOptions).length > 0 && { providerOptions }),
  }
}

function aiSdkToolChoice(choice: ToolChoice): JsonObject {
  return typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.tool }
}

/** False for Claude models: their APIs reject most characters in the keys of a tool's properties. */
function hasAnyKeys({ provider, modelId }: CallRules): boolean {
  return !/claude|anthropic/i.test(`${provider} ${modelId}`)
}

function functionTool(tool: ToolDefinition, rules: CallRules): JsonObject {
  if (isHosted(tool)) return aiSdkTool(tool, rules, rules.version.hostedTool)
  const { name, parameters } = tool
  const description = describedTool(tool)
  return {
    type: 'function',
    name,
    ...(description !== '' && { description }),
    inputSchema: (hasAnyKeys(rules) ? inputSchema : acceptedSchema)(parameters, name),
    ...(rules.traits.looseTools === true && { strict: false }),
  }
}

function responseFormat({ name, schema, description }: NonNullable<RequestConstants['structuredOutput']>): JsonObject {
  return { type: 'json', schema, name, ...(description !== undefined && { description }) }
}

/** The settings take precedence over the model's options, and both over the defaults for the provider. */
function allProviderOptions(
  { settings, structuredOutput }: RequestConstants,
  effort: ReasoningEffort | undefined,
  { options, version, traits, modelId }: CallRules,
): JsonObject {
  const given = mergeJson(options.providerOptions ?? {}, settings.providerOptions)
  const key = traits.optionKeys.find((name) => isObject(given[name])) ?? traits.optionKeys.at(-1)
  if (key === undefined) return given
  const own = [
    traits.defaults?.(promptCacheOf(options)),
    ...(effort === undefined || version.takesReasoning ? [] : [traits.effort?.(effort, modelId)]),
    ...(structuredOutput?.strict === false ? [traits.looseOutput] : []),
  ].reduce<JsonObject>(mergeJson, {})
  if (Object.keys(own).length === 0 && given[key] === undefined) return given
  const merged = mergeJson({ [key]: own }, given)
  return structuredOutput === null ? merged : withoutOutputOptions(merged, key, traits)
}

/** The harness's own format takes precedence over any other. */
function withoutOutputOptions(options: JsonObject, key: string, { outputOptions = [] }: ProviderTraits): JsonObject {
  const own = options[key]
  return isObject(own) ? { ...options, [key]: without(own, ...outputOptions) } : options
}

function promptCacheOf({ promptCache = true }: AiSdkOptions): PromptCache {
  if (promptCache === false) return null
  return promptCache === true ? {} : promptCache
}
