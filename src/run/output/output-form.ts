import { HarnessError, messageOf } from '#contracts/errors.js'
import type { ModelCapabilities, StructuredOutputMode } from '#core/model-session.js'
import { inlinedSchema } from '#schema/clean-schema.js'
import { answerDocument, wrappedAnswer } from '#schema/answer-schema.js'
import { jsonSchemaOf } from '#schema/schema.js'
import type { Schema } from '#schema/schema.js'
import { strictSchema } from '#schema/strict-schema.js'
import { isSchema, mapSubschemas } from '#schema/subschemas.js'
import type { OutputType } from '#core/tools/output-type.js'
import type { JsonSchema } from '#util/json.js'

/** An output type and the requested mode. */
export interface RequestedOutput {
  readonly type: OutputType
  readonly mode: StructuredOutputMode | 'auto'
}

/** The schema of an answer and the mode in which it is requested from a model. */
export interface OutputForm extends Forms {
  readonly mode: StructuredOutputMode
}

/** The form in which a model of these capabilities is asked. Throws `invalid_options` for a mode that the model or the type does not support. */
export function outputForm(requested: RequestedOutput, capabilities: ModelCapabilities): OutputForm {
  const forms = formsOf(requested.type)
  return { ...forms, mode: resolveMode(requested.mode, capabilities, forms) }
}

/** The JSON Schema of an answer; of several types, that it is any of them. Throws `invalid_options` for an invalid type. */
export function outputSchemaOf(type: OutputType): JsonSchema {
  if (!isSeveral(type)) return jsonSchemaOf(type, '`outputType`')
  const known = joined.get(type)
  if (known !== undefined) return known
  if (type.length === 0) throw new HarnessError('invalid_options', 'Expected `outputType` to have at least one schema.')
  const schemas = type.map((each, index) =>
    withOwnDefinitions(inlinedSchema(jsonSchemaOf(each, `\`outputType[${index}]\``)), index),
  )
  const [first, ...others] = schemas
  const $defs = Object.assign({}, ...schemas.map((schema) => schema['$defs'] ?? {})) as JsonSchema
  const anyOf = schemas.map(({ $defs: _, ...schema }) => schema)
  const made =
    first !== undefined && others.length === 0 ? first : { anyOf, ...(Object.keys($defs).length > 0 && { $defs }) }
  joined.set(type, made)
  return made
}

const joined = new WeakMap<readonly Schema[], JsonSchema>()

export function isSeveral(type: OutputType): type is readonly Schema[] {
  return Array.isArray(type)
}

/** The schema of an answer, as models are asked for it. */
interface Forms extends Traits {
  readonly document: JsonSchema
  /** The answer is a member of an object: an object is required at the root. */
  readonly isWrapped: boolean
  /** With an object at the root. */
  readonly full: JsonSchema
  readonly strict: JsonSchema | null
}

/** By type: made once. */
const formsByType = new WeakMap<object, Forms>()

function formsOf(type: OutputType): Forms {
  const known = formsByType.get(type)
  if (known !== undefined) return known
  const document = outputDocument(type)
  const isText = document['type'] === 'string' && document['enum'] === undefined && document['const'] === undefined
  const isWrapped = !isPlainObject(document)
  const full = isWrapped ? wrappedAnswer(document) : document
  const strict = strictSchema(full)
  const traits = { isText, isStrict: strict !== null, isRecursive: full['$defs'] !== undefined }
  const made = { document, isWrapped, full, strict, ...traits }
  formsByType.set(type, made)
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
    throw invalidMode('the model cannot be held to a JSON Schema by its provider; use `tool` or `prompted`', mode)
  }
  if (mode === 'native' && !traits.isText && !canEnforce(capabilities, traits)) {
    throw invalidMode(
      'the provider cannot enforce a schema with maps, open or recursive parts; use `tool` or `prompted`',
      mode,
    )
  }
  if (mode === 'tool' && supportsTools === false) {
    throw invalidMode('the model cannot call tools; use `prompted`', mode)
  }
  if (mode === 'text' && !traits.isText) throw invalidMode('it is for answers of type string', mode)
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

function invalidMode(why: string, mode: string): HarnessError {
  return new HarnessError('invalid_options', `\`outputMode\` cannot be \`${mode}\`: ${why}.`)
}

function isPlainObject(document: JsonSchema): boolean {
  const { type, anyOf, oneOf, allOf, $ref } = document
  return type === 'object' && [anyOf, oneOf, allOf, $ref].every((keyword) => keyword === undefined)
}

/** Several schemas may have given one name to different definitions. */
function withOwnDefinitions(schema: JsonSchema, index: number): JsonSchema {
  const { $defs } = schema
  if (!isSchema($defs)) return schema
  const own = (name: string): string => `${name}_${index + 1}`
  const renamed = (each: JsonSchema): JsonSchema => {
    const { $ref, ...rest } = each
    const members = mapSubschemas(rest, renamed)
    return typeof $ref === 'string' ? { ...members, $ref: own($ref) } : members
  }
  const { $defs: definitions, ...rest } = renamed(schema)
  const entries = isSchema(definitions) ? Object.entries(definitions) : []
  return { ...rest, $defs: Object.fromEntries(entries.map(([name, each]) => [own(name), each])) }
}
