import { HarnessError } from '../errors.js'
import type { ModelCapabilities, StructuredOutputMode } from '../model/contracts.js'
import { jsonSchemaOf, parseWith } from '../tools/schema.js'
import type { Schema } from '../tools/schema.js'
import type { ArgumentIssue } from '../tools/validation.js'
import { clipped, dotted } from '../tools/summaries.js'
import { isObject, parseJson } from '../util/json.js'
import type { JsonSchema } from '../util/json.js'
import { closed, isStrict, sortedKeys, wrapped } from './document.js'
import { FINAL_RESULT } from './format.js'
import type { OutputFormat, ParsedOutput } from './format.js'

const DESCRIPTION = 'Gives the final answer. Call it once, alone, when the work is done.'

/**
 * How an answer of a schema is asked for from a model of these capabilities (spec §9.2 to §9.4). Throws
 * `invalid_options` for a mode that the model or the type cannot have.
 */
export function outputFormat(
  outputType: Schema,
  asked: StructuredOutputMode | 'auto',
  capabilities: ModelCapabilities,
): OutputFormat {
  const document = closed(jsonSchemaOf(outputType, '`outputType`'))
  const isText = document['type'] === 'string' && document['enum'] === undefined
  const mode = resolveMode(asked, capabilities, isText)
  const reads = reader(outputType)
  if (mode === 'text') return { mode, tool: null, request: null, instructions: '', ...reads(false, false) }
  const isWrapped = mode !== 'prompted' && !isPlainObject(document)
  const schema = isWrapped ? wrapped(document) : document
  return {
    mode,
    tool: mode === 'tool' ? { name: FINAL_RESULT, description: DESCRIPTION, parameters: schema } : null,
    request: mode === 'native' ? { name: FINAL_RESULT, schema, strict: isStrict(schema) } : null,
    instructions: mode === 'prompted' ? promptedInstructions(document) : '',
    ...reads(mode === 'native' && isWrapped, mode === 'tool' && isWrapped),
  }
}

function resolveMode(
  asked: StructuredOutputMode | 'auto',
  capabilities: ModelCapabilities,
  isText: boolean,
): StructuredOutputMode {
  const { supportsJsonSchemaOutput, supportsTools, permissiveNativeOverride, defaultStructuredOutputMode } =
    capabilities
  const mode = asked === 'auto' ? (defaultStructuredOutputMode ?? 'tool') : asked
  if (mode === 'native' && supportsJsonSchemaOutput !== true && permissiveNativeOverride !== true) {
    throw invalid('the model cannot be held to a JSON Schema by its provider; use `tool` or `prompted`', mode)
  }
  if (mode === 'tool' && supportsTools === false) {
    throw invalid('the model cannot call tools; use `prompted`', mode)
  }
  if (mode === 'text' && !isText) throw invalid('it is for answers of type string', mode)
  return isText ? 'text' : mode
}

function invalid(why: string, mode: string): HarnessError {
  return new HarnessError('invalid_options', `\`outputMode\` cannot be \`${mode}\`: ${why}.`)
}

function isPlainObject(document: JsonSchema): boolean {
  return document['type'] === 'object' && document['anyOf'] === undefined && document['oneOf'] === undefined
}

function promptedInstructions(document: JsonSchema): string {
  return `Give the final answer as JSON only, without any other text, fitting this JSON Schema:\n${JSON.stringify(sortedKeys(document))}`
}

type Reads = Pick<OutputFormat, 'parseText' | 'parseArguments'>

function reader(outputType: Schema): (textIsWrapped: boolean, argumentsAreWrapped: boolean) => Reads {
  const read = async (text: string, isWrapped: boolean): Promise<ParsedOutput> => {
    const parsed = parseJson(text)
    if (!parsed.ok) return { ok: false, problem: `The answer is not JSON: ${parsed.problem}` }
    const json = isWrapped && isObject(parsed.value) ? parsed.value['value'] : parsed.value
    const result = await parseWith(outputType, json)
    if (!result.ok) return { ok: false, problem: problemOf(result.issues) }
    return { ok: true, json: json ?? null, value: result.value }
  }
  return (textIsWrapped, argumentsAreWrapped) => ({
    parseText: (text) => read(withoutFence(text), textIsWrapped),
    parseArguments: (text) => read(text, argumentsAreWrapped),
  })
}

const MOST_ISSUES = 12

function problemOf(issues: readonly ArgumentIssue[]): string {
  const lines = issues
    .slice(0, MOST_ISSUES)
    .map(({ path, message }) => `- ${dotted(path)}: ${clipped(message, LONGEST_MESSAGE)}`)
  return (lines.length < issues.length ? [...lines, '- and more problems'] : lines).join('\n')
}

/** Characters of what is wrong with one field. */
const LONGEST_MESSAGE = 300

/** The inside of one Markdown code fence around the whole text. */
function withoutFence(text: string): string {
  const trimmed = text.trim()
  const fence = /^```(?:json)?[ \t]*\r?\n([\s\S]*?)\r?\n?```$/i.exec(trimmed)
  return fence?.[1] ?? trimmed
}
