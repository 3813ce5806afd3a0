import { HarnessError } from '../../contracts/errors.js'
import type { ReasoningEffort, RequestConstants, ToolChoice, ToolDefinition } from '../../contracts/model.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import { mergeJson } from '../../util/merge-json.js'
import { inputSchema } from '../../schema/input-schema.js'
import type { AiSdkOptions } from './options.js'
import type { CallSettings } from './wire.js'
import type { PromptCache, ProviderTraits } from './traits.js'
import type { Version } from './versions.js'

/** What all calls of one model have in common. */
export interface CallRules {
  /** As the language model names it. */
  readonly provider: string
  readonly modelId: string
  readonly version: Version
  readonly traits: ProviderTraits
  readonly options: AiSdkOptions
}

/** What all calls of a session share but their messages. Empty fields are left out. */
export function callSettings(constants: RequestConstants, rules: CallRules): CallSettings {
  const { tools, settings, structuredOutput } = constants
  const { options, version, traits } = rules
  const { toolChoice = 'auto' } = settings
  const maxOutputTokens = settings.maxOutputTokens ?? options.maxOutputTokens
  const temperature = settings.temperature ?? options.temperature
  const effort = settings.reasoningEffort ?? options.reasoningEffort
  const providerOptions = allProviderOptions(constants, effort, rules)
  return {
    ...options.callOptions,
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(effort !== undefined && version.takesReasoning && { reasoning: effort }),
    ...(tools.length > 0 && { tools: tools.map((tool) => functionTool(tool, traits)) }),
    ...(tools.length > 0 && toolChoice !== 'auto' && toolChoiceField(toolChoice)),
    ...(structuredOutput !== null && { responseFormat: responseFormat(structuredOutput) }),
    ...(options.headers !== undefined && { headers: options.headers }),
    ...(Object.keys(providerOptions).length > 0 && { providerOptions }),
  }
}

/** The choice of tools as a field of a call. */
export function toolChoiceField(choice: ToolChoice): CallSettings {
  return { toolChoice: typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.tool } }
}

/** Throws `invalid_options` where there is no way to tell the provider how much to think. */
export function checkEffortOption(effort: ReasoningEffort | undefined, { version, traits, provider }: CallRules): void {
  if (effort === undefined || version.takesReasoning || traits.effort !== undefined) return
  const name = provider.replace(/\..*$/s, '')
  throw new HarnessError(
    'invalid_options',
    `It is not known how \`${provider}\` of the AI SDK is told a \`reasoningEffort\`: give its own option, as \`providerOptions: { '${name}': { … } }\`.`,
  )
}

function functionTool({ name, description, parameters }: ToolDefinition, { looseTools }: ProviderTraits): CallSettings {
  return {
    type: 'function',
    name,
    ...(description !== '' && { description }),
    inputSchema: inputSchema(parameters),
    ...(looseTools === true && { strict: false }),
  }
}

function responseFormat({
  name,
  schema,
  description,
}: NonNullable<RequestConstants['structuredOutput']>): CallSettings {
  return { type: 'json', schema, name, ...(description !== undefined && { description }) }
}

/** Those of the settings win over those of the factory, and both over what is known of the provider. */
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

/** The harness's own format wins over any other. */
function withoutOutputOptions(options: JsonObject, key: string, { outputOptions = [] }: ProviderTraits): JsonObject {
  const own = options[key]
  if (!isObject(own)) return options
  const kept = Object.entries(own).filter(([name]) => !outputOptions.includes(name))
  return { ...options, [key]: Object.fromEntries(kept) }
}

function promptCacheOf({ promptCache = true }: AiSdkOptions): PromptCache {
  if (promptCache === false) return null
  return promptCache === true ? {} : promptCache
}
