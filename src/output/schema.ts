import { HarnessError, messageOf, ModelRetry } from '../contracts/errors.js'
import type { ModelCapabilities, StructuredOutputMode } from '../contracts/model.js'
import type { OutputContext, OutputType, OutputValidator } from '../tools/output-type.js'
import type { ArgumentIssue } from '../schema/validation.js'
import { clipped, dotted } from '../tools/boundary/summaries.js'
import { isObject, parseJson } from '../util/json.js'
import type { JsonSchema, JsonValue } from '../util/json.js'
import { answerDocument, sortedKeys, wrapped } from '../schema/document.js'
import { withoutFillers } from '../schema/fillers.js'
import { followAnswer } from './follow.js'
import { FINAL_RESULT } from './format.js'
import type { OutputFormat, ParsedOutput } from './format.js'
import { outputSchemaOf, parseAnswer } from './several.js'
import { strictSchema } from '../schema/strict.js'

const DESCRIPTION = 'Gives the final answer. Call it once, alone, when the work is done.'

/** The type of an answer that may be any text. */
export const anyText: JsonSchema = { type: 'string' }

/** The type of an answer, and how it is requested. */
export interface AskedOutput {
  readonly type: OutputType
  readonly mode: StructuredOutputMode | 'auto'
  /** The caller's own check, of an answer that fits. */
  readonly validate?: OutputValidator<unknown> | null
  /** Finds problems of the evidence in an answer; set if the type demands evidence. */
  readonly checkEvidence?: ((json: JsonValue, context: OutputContext) => Promise<readonly ArgumentIssue[]>) | null
}

/**
 * How an answer is asked for from a model of these capabilities. Throws `invalid_options` for a
 * mode that the model or the type cannot have.
 */
export function outputFormat(asked: AskedOutput, capabilities: ModelCapabilities): OutputFormat {
  const { document, isWrapped, full, strict, ...traits } = formsOf(asked.type)
  const mode = resolveMode(asked.mode, capabilities, traits)
  const none = { mode, tool: null, request: null, instructions: '' }
  switch (mode) {
    case 'text':
      return { ...none, ...textReader(asked) }
    case 'tool':
      return {
        ...none,
        tool: { name: FINAL_RESULT, description: DESCRIPTION, parameters: full },
        ...jsonReader(asked, { isWrapped, strictOf: null }),
      }
    case 'native':
      return {
        ...none,
        request: { name: FINAL_RESULT, schema: strict ?? full, strict: strict !== null },
        ...jsonReader(asked, { isWrapped, strictOf: strict === null ? null : document }),
      }
    case 'prompted':
      return {
        ...none,
        instructions: promptedInstructions(document),
        ...jsonReader(asked, { isWrapped: false, strictOf: null }),
      }
  }
}

interface Forms extends Traits {
  readonly document: JsonSchema
  /** An object is demanded at the root: there the answer is a member of one. */
  readonly isWrapped: boolean
  /** With an object at the root. */
  readonly full: JsonSchema
  readonly strict: JsonSchema | null
}

/** Made once a type. */
const forms = new WeakMap<object, Forms>()

function formsOf(type: OutputType): Forms {
  const known = forms.get(type)
  if (known !== undefined) return known
  const document = outputDocument(type)
  const isText = document['type'] === 'string' && document['enum'] === undefined && document['const'] === undefined
  const isWrapped = !isPlainObject(document)
  const full = isWrapped ? wrapped(document) : document
  const strict = strictSchema(full)
  const traits = { isText, isStrict: strict !== null, isRecursive: full['$defs'] !== undefined }
  const made = { document, isWrapped, full, strict, ...traits }
  forms.set(type, made)
  return made
}

function outputDocument(type: OutputType): JsonSchema {
  const schema = outputSchemaOf(type)
  try {
    return answerDocument(schema)
  } catch (cause) {
    throw new HarnessError('invalid_options', `\`outputType\` cannot be given to a model: ${messageOf(cause)}`, {
      cause,
    })
  }
}

interface Traits {
  readonly isText: boolean
  /** It has a strict form. */
  readonly isStrict: boolean
  /** Other references are inlined. */
  readonly isRecursive: boolean
}

function resolveMode(
  asked: StructuredOutputMode | 'auto',
  capabilities: ModelCapabilities,
  traits: Traits,
): StructuredOutputMode {
  const { supportsJsonSchemaOutput, supportsTools, permissiveNativeOverride } = capabilities
  const mode = asked === 'auto' ? bestMode(capabilities, traits) : asked
  if (mode === 'native' && supportsJsonSchemaOutput !== true && permissiveNativeOverride !== true) {
    throw invalid('the model cannot be held to a JSON Schema by its provider; use `tool` or `prompted`', mode)
  }
  if (mode === 'native' && !traits.isText && !canEnforce(capabilities, traits)) {
    throw invalid(
      'the provider cannot enforce a schema with maps, open or recursive parts; use `tool` or `prompted`',
      mode,
    )
  }
  if (mode === 'tool' && supportsTools === false) {
    throw invalid('the model cannot call tools; use `prompted`', mode)
  }
  if (mode === 'text' && !traits.isText) throw invalid('it is for answers of type string', mode)
  return traits.isText ? 'text' : mode
}

function bestMode(capabilities: ModelCapabilities, traits: Traits): StructuredOutputMode {
  const { defaultStructuredOutputMode, supportsTools } = capabilities
  const withoutNative = supportsTools === false ? 'prompted' : 'tool'
  if (defaultStructuredOutputMode !== 'native') return defaultStructuredOutputMode ?? withoutNative
  return canEnforce(capabilities, traits) ? 'native' : withoutNative
}

function canEnforce({ nativeSchemas = 'any' }: ModelCapabilities, { isStrict, isRecursive }: Traits): boolean {
  return nativeSchemas === 'any' || (isStrict && !isRecursive)
}

function invalid(why: string, mode: string): HarnessError {
  return new HarnessError('invalid_options', `\`outputMode\` cannot be \`${mode}\`: ${why}.`)
}

function isPlainObject(document: JsonSchema): boolean {
  const { type, anyOf, oneOf, allOf, $ref } = document
  return type === 'object' && [anyOf, oneOf, allOf, $ref].every((keyword) => keyword === undefined)
}

function promptedInstructions(document: JsonSchema): string {
  return `Give the final answer as JSON only, without any other text, fitting this JSON Schema:\n${JSON.stringify(sortedKeys(document))}`
}

type Reader = Pick<OutputFormat, 'parseText' | 'parseArguments' | 'follow'>

/** How an answer is written: as the member `value` of an object, or in the strict form of a schema. */
interface Written {
  readonly isWrapped: boolean
  readonly strictOf: JsonSchema | null
}

function jsonReader(asked: AskedOutput, { isWrapped, strictOf }: Written): Reader {
  const read = async (text: string, context: OutputContext): Promise<ParsedOutput> => {
    const parsed = parseJson(text)
    if (!parsed.ok) return { ok: false, problem: `The answer is not JSON: ${parsed.problem}` }
    const given = isWrapped && isObject(parsed.value) ? parsed.value['value'] : parsed.value
    const json = strictOf === null || given === undefined ? given : withoutFillers(strictOf, given)
    const result = await parseAnswer(asked.type, json)
    if (!result.ok) return { ok: false, problem: problemOf(result.issues) }
    return checked(asked, { json: json ?? null, value: result.value }, context)
  }
  return {
    parseText: (text, context) => read(withoutFence(text), context),
    parseArguments: read,
    follow: () => followAnswer({ isWrapped, hasFillers: strictOf !== null }),
  }
}

/** Text fits as it is; only what the caller checks can be wrong with it. */
function textReader(asked: AskedOutput): Reader {
  const read = async (text: string, context: OutputContext): Promise<ParsedOutput> => {
    const result = asked.type === anyText ? { ok: true as const, value: text } : await parseAnswer(asked.type, text)
    if (!result.ok) return { ok: false, problem: problemOf(result.issues) }
    return checked(asked, { json: text, value: result.value }, context)
  }
  return { parseText: read, parseArguments: read, follow: () => null }
}

async function checked(
  { validate, checkEvidence }: AskedOutput,
  answer: { readonly json: JsonValue; readonly value: unknown },
  context: OutputContext,
): Promise<ParsedOutput> {
  const issues = (await checkEvidence?.(answer.json, context)) ?? []
  if (issues.length > 0) return { ok: false, problem: problemOf(issues) }
  try {
    await validate?.(answer.value, context)
    return { ok: true, ...answer }
  } catch (thrown) {
    if (thrown instanceof ModelRetry) return { ok: false, problem: clipped(thrown.message, LONGEST_PROBLEM) }
    throw thrown
  }
}

const MOST_ISSUES = 12

function problemOf(issues: readonly ArgumentIssue[]): string {
  const lines = issues
    .slice(0, MOST_ISSUES)
    .map(({ path, message }) => `- ${dotted(path)}: ${clipped(message, LONGEST_MESSAGE)}`)
  return (lines.length < issues.length ? [...lines, '- and more problems'] : lines).join('\n')
}

/** Most characters of the problem of one field. */
const LONGEST_MESSAGE = 300
/** Characters of what the caller's own check says. */
const LONGEST_PROBLEM = 4_000

/** The inside of one Markdown code fence around the whole text. */
function withoutFence(text: string): string {
  const trimmed = text.trim()
  const fence = /^```(?:json)?[ \t]*\r?\n([\s\S]*?)\r?\n?```$/i.exec(trimmed)
  return fence?.[1] ?? trimmed
}
