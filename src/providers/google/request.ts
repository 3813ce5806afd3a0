import { invalidOptions } from '#contracts/parse.js'
import type { RequestConstants, ToolChoice, ToolDefinition } from '#core/model-session.js'
import { acceptedSchema } from '#schema/tool-schema.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import type { WireFormat } from '../http/wire-format.js'
import { describedTool } from '../hosted/tool-definitions.js'
import { isHosted } from '../hosted/hosted-definition.js'
import { checkOwnFields, settingsOf, withCallerFields } from '../wire/request-settings.js'
import type { RequestDefaults } from '../wire/request-settings.js'
import { isFilled, objectsIn, without } from '../wire/wire-fields.js'
import { googleTools } from './hosted.js'
import { encodeContents } from './messages.js'
import { knownContent, modelFamily, modelPath, PROVIDER } from './models.js'
import { answerSchema } from './schema.js'
import { ContentFold, decodeContent } from './stream.js'
import { thinkingFields } from './thinking.js'

/** The options that all requests to one model share. */
export interface ContentRequestOptions {
  readonly id: string
  readonly defaults: RequestDefaults
  /** The API takes the ids of calls. */
  readonly hasCallIds: boolean
}

/** `generateContent` as functions. */
export function contentFormat(options: ContentRequestOptions): WireFormat {
  const { id, hasCallIds } = options
  const { isThird } = modelFamily(id)
  const known = new WeakMap<RequestConstants, JsonObject>()
  const headOf = (constants: RequestConstants): JsonObject => {
    const head = known.get(constants) ?? contentHead(constants, options)
    known.set(constants, head)
    return head
  }
  return {
    streamPath: `/${modelPath(id)}:streamGenerateContent?alt=sse`,
    head: headOf,
    opening: () => [],
    encode: (entries) => encodeContents(entries, { isThird, hasCallIds }),
    tail: ({ toolChoice, maxOutputTokens }, constants) => ({
      ...(toolChoice !== undefined && {
        toolConfig: { ...objectOf(headOf(constants), 'toolConfig'), ...calling(toolChoice) },
      }),
      ...(maxOutputTokens !== undefined &&
        limitFields(maxOutputTokens, constants, { options, head: headOf(constants) })),
    }),
    fold: (foldOptions) => new ContentFold(foldOptions, isThird),
    decode: (reply, foldOptions) => decodeContent(reply, foldOptions, isThird),
    // Last: to add members to a spread is slow.
    ...knownContent(id),
  }
}

/** All fields of a request except its contents and the fields that differ between requests. */
function contentHead(constants: RequestConstants, { id, defaults }: ContentRequestOptions): JsonObject {
  const { instructions, tools, settings, structuredOutput } = constants
  const family = modelFamily(id)
  const { maxOutputTokens, temperature, reasoningEffort } = settingsOf(settings, defaults)
  const { toolChoice = 'auto' } = settings
  const functions = tools.filter((tool) => !isHosted(tool))
  // The API holds the calls of all functions to their schemas, or those of none.
  const isStrict = functions.some(({ strict }) => strict === true)
  const declared = functions.length === 0 ? [] : [{ functionDeclarations: functions.map(functionDeclaration) }]
  const offered = [...declared, ...googleTools(tools, id, family)]
  const generationConfig = {
    ...(tools.some(({ hosted }) => hosted?.kind === 'image_generation') && { responseModalities: ['TEXT', 'IMAGE'] }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...withSummary(thinkingFields(family, reasoningEffort, maxOutputTokens), defaults.reasoningSummary),
  }
  const base = {
    ...(instructions.trim() !== '' && { systemInstruction: { parts: [{ text: instructions }] } }),
    ...(isFilled(offered) && { tools: offered }),
    ...(functions.length > 0 && toolChoice !== 'auto' && { toolConfig: calling(toolChoice) }),
    ...(isStrict && toolChoice === 'auto' && { toolConfig: { functionCallingConfig: { mode: 'VALIDATED' } } }),
    ...(isFilled(generationConfig) && { generationConfig }),
  }
  const given = [defaults.extraBody, settings.providerOptions?.[PROVIDER]]
  for (const fields of given) checkOwnFields(fields, ['contents'])
  const fields = withSoundThinking(withOwnTools(given.reduce(withCallerFields, base), family.isThird))
  if (structuredOutput === null) return withoutCached(fields)
  if (offered.length > 0 && !family.isThird) {
    throw invalidOptions(
      `\`${id}\` cannot be held to a schema while it has tools: choose \`outputMode: 'tool'\`, or a model of Gemini 3 or later.`,
    )
  }
  const format = { responseMimeType: 'application/json', responseJsonSchema: answerSchema(structuredOutput.schema) }
  return withoutCached({ ...fields, generationConfig: { ...objectOf(fields, 'generationConfig'), ...format } })
}

/** The schema of a tool is sent as JSON Schema, which the API takes as it is. One without parameters has none. */
function functionDeclaration(tool: ToolDefinition): JsonObject {
  const { name, parameters } = tool
  const description = describedTool(tool)
  const schema = acceptedSchema(parameters, name)
  const { properties, additionalProperties = false } = schema
  const isEmpty = !isFilled(properties) && additionalProperties === false
  return { name, ...(description !== '' && { description }), ...(!isEmpty && { parametersJsonSchema: schema }) }
}

function calling(choice: ToolChoice): JsonObject {
  if (typeof choice === 'object') return { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [choice.tool] } }
  return { functionCallingConfig: { mode: MODES[choice] } }
}

const MODES = { auto: 'AUTO', none: 'NONE', required: 'ANY' } as const

/**
 * The third generation shows the calls of Google's own tools if it is asked to, except of programs; beside functions it must be, and
 * not in the mode `AUTO`.
 */
function withOwnTools(fields: JsonObject, isThird: boolean): JsonObject {
  const { tools } = fields
  const kinds = Array.isArray(tools) ? objectsIn(tools).flatMap((tool) => Object.keys(tool)) : []
  const others = kinds.filter((kind) => kind !== 'functionDeclarations')
  const hasBoth = others.length > 0 && others.length < kinds.length
  if (!isThird || !(hasBoth || others.some((kind) => kind !== 'codeExecution'))) return fields
  const toolConfig = {
    ...(hasBoth && { functionCallingConfig: { mode: 'VALIDATED' } }),
    includeServerSideToolInvocations: true,
    ...objectOf(fields, 'toolConfig'),
  }
  return { ...fields, toolConfig }
}

/** Thoughts are asked for unless they are not to be seen. */
function withSummary(fields: JsonObject, summary: RequestDefaults['reasoningSummary']): JsonObject {
  const { thinkingConfig } = fields
  if (summary !== 'none' || !isObject(thinkingConfig)) return fields
  return { ...fields, thinkingConfig: { ...thinkingConfig, includeThoughts: false } }
}

/** The API shows no thoughts that are turned off, and takes either a budget or a level. A budget is the caller's own field. */
function withSoundThinking(fields: JsonObject): JsonObject {
  const generationConfig = objectOf(fields, 'generationConfig')
  const thinkingConfig = objectOf(generationConfig, 'thinkingConfig')
  const { thinkingBudget } = thinkingConfig
  if (thinkingBudget === undefined) return fields
  const names = ['thinkingLevel', ...(thinkingBudget === 0 ? ['includeThoughts'] : [])]
  return { ...fields, generationConfig: { ...generationConfig, thinkingConfig: without(thinkingConfig, ...names) } }
}

/** What a cache of the caller's contains cannot be in the request too. */
function withoutCached(fields: JsonObject): JsonObject {
  if (fields['cachedContent'] === undefined) return fields
  return without(fields, 'systemInstruction', 'tools', 'toolConfig')
}

/** A lower limit than the settings'. A budget of thoughts stays below it. */
function limitFields(
  maxOutputTokens: number,
  { settings }: RequestConstants,
  { options, head }: { readonly options: ContentRequestOptions; readonly head: JsonObject },
): JsonObject {
  const generationConfig = objectOf(head, 'generationConfig')
  const { reasoningEffort } = settingsOf(settings, options.defaults)
  const { thinkingConfig } = thinkingFields(modelFamily(options.id), reasoningEffort, maxOutputTokens)
  const own = objectOf(generationConfig, 'thinkingConfig')
  const isBudget = isObject(thinkingConfig) && 'thinkingBudget' in thinkingConfig && 'thinkingBudget' in own
  return {
    generationConfig: {
      ...generationConfig,
      maxOutputTokens,
      ...(isBudget && { thinkingConfig: { ...own, thinkingBudget: thinkingConfig['thinkingBudget'] } }),
    },
  }
}

function objectOf(fields: JsonObject, name: string): JsonObject {
  const value = fields[name]
  return isObject(value) ? value : {}
}
