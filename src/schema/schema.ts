import { HarnessError, messageOf } from '#contracts/errors.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonSchema } from '#util/json.js'
import { cleanSchema } from './clean-schema.js'
import { typedIssues } from './argument-issues.js'
import type { StandardResult, ArgumentIssue, Validate } from './argument-issues.js'

/**
 * A schema of values of type `T`: zod (from 4.2) or any Standard Schema that can emit JSON Schema, or a JSON Schema
 * document, whose type is unknown.
 */
export type Schema<T = unknown> = StandardSchema<T> | JsonSchema

/** The parts of a typed schema that are read: https://standardschema.dev, with its JSON Schema part. */
export interface StandardSchema<T = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly types?: { readonly input: unknown; readonly output: T } | undefined
    readonly validate: (value: unknown) => StandardResult<T> | Promise<StandardResult<T>>
    readonly jsonSchema: { readonly input: (options: { readonly target: string }) => Record<string, unknown> }
  }
}

/** The type of the values that a schema accepts; a JSON object for a JSON Schema document. */
export type InferSchema<S> = S extends StandardSchema<infer T> ? T : JsonObject

/** The result of parsing a value. */
export type ParsedArguments<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly issues: readonly ArgumentIssue[] }

export function isStandardSchema(schema: unknown): schema is StandardSchema {
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null) return false
  return '~standard' in schema && isObject(schema['~standard'])
}

/**
 * The JSON Schema of `schema` for a model. Of a typed schema: its input, cleaned, closed at an
 * object root, frozen; the same object for all that emit the same, since servers make their schemas anew for each request. A JSON Schema document is returned as it is. Throws a `HarnessError`
 * of code `invalid_options` for anything else; `where` begins its message, such as `` `parameters` of tool `x` ``.
 */
export function jsonSchemaOf(schema: Schema, where: string): JsonSchema {
  if (!isStandardSchema(schema)) return checkedDocument(schema, where)
  const made = cleaned.get(schema) ?? cleanedSchema(schema, where)
  cleaned.set(schema, made)
  return made
}

const cleaned = new WeakMap<StandardSchema, JsonSchema>()

/** The latest, by the text that they are made of. */
const byText = new Map<string, JsonSchema>()
const MOST_TEXTS = 200

/** The `validate` of a tool whose parameters are typed; none for a JSON Schema document. */
export function validatorOf(schema: Schema, parameters: JsonSchema): Validate | undefined {
  if (!isStandardSchema(schema)) return undefined
  // A transform can return any type: the handler expects what the schema returns.
  const validate: Validate = (args) => parseTyped(schema as StandardSchema<JsonObject>, args)
  covered.set(validate, parameters)
  return validate
}

/** True if `validate` checks everything that `parameters` require, so that they need no check of their own. */
export function coversParameters(validate: Validate, parameters: JsonSchema): boolean {
  return covered.get(validate) === parameters
}

const covered = new WeakMap<Validate, JsonSchema>()

/** Parses a value with a typed schema, whose defaults and transforms apply. */
export async function parseTyped<T>(schema: StandardSchema<T>, value: unknown): Promise<ParsedArguments<T>> {
  const result = await schema['~standard'].validate(value)
  return result.issues === undefined
    ? { ok: true, value: result.value }
    : { ok: false, issues: typedIssues(result.issues) }
}

function cleanedSchema(schema: StandardSchema, where: string): JsonSchema {
  try {
    const text = emittedText(schema)
    // Parsed from text: anything that is not JSON (functions, the library's own marks) is removed.
    const made = byText.get(text) ?? deepFreeze(cleanSchema(JSON.parse(text) as JsonSchema))
    if (byText.size >= MOST_TEXTS && !byText.has(text)) byText.clear()
    byText.set(text, made)
    return made
  } catch (cause) {
    const message = `${where} cannot be given to a model: ${schemaProblem(schema, cause)}`
    throw new HarnessError('invalid_options', message, { cause })
  }
}

const TARGET = 'draft-2020-12'

function emittedText(schema: StandardSchema, libraryOptions?: Record<string, unknown>): string {
  const { vendor, jsonSchema } = schema['~standard'] as Partial<StandardSchema['~standard']>
  if (typeof jsonSchema?.input !== 'function') {
    throw new TypeError(
      `this schema of \`${vendor ?? 'an unnamed library'}\` emits no JSON Schema; zod does from 4.2, other libraries by their JSON Schema add-on`,
    )
  }
  const options = { target: TARGET, ...(libraryOptions !== undefined && { libraryOptions }) }
  return JSON.stringify(jsonSchema.input(options))
}

/** The problem and, if the library reports it, its field. */
function schemaProblem(schema: StandardSchema, cause: unknown): string {
  let place: string | undefined
  const unrepresentable = ({ path }: { path?: readonly unknown[] }): 'any' => {
    place ??= path
      ?.filter((step) => step !== 'properties')
      .map(String)
      .join('.')
    return 'any'
  }
  try {
    emittedText(schema, { unrepresentable })
  } catch {
    // The first error is reported.
  }
  return place === undefined || place === '' ? messageOf(cause) : `\`${place}\`: ${messageOf(cause)}`
}

function checkedDocument(schema: unknown, where: string): JsonSchema {
  if (!isObject(schema) || !isPlain(schema)) {
    const message = `Expected ${where} to be a zod schema (from 4.2), another Standard Schema or a JSON Schema object, got ${valueName(schema)}.`
    throw new HarnessError('invalid_options', message)
  }
  if (documents.has(schema)) return schema as JsonSchema
  checkKeywords(schema, where)
  try {
    JSON.stringify(schema)
  } catch (cause) {
    throw new HarnessError('invalid_options', `Expected ${where} to be plain JSON: ${messageOf(cause)}`, { cause })
  }
  if (isDeeperThan(MOST_LEVELS, schema)) {
    throw new HarnessError('invalid_options', `Expected ${where} to have at most ${MOST_LEVELS} levels, got more.`)
  }
  documents.add(schema)
  return schema as JsonSchema
}

/** Objects and lists inside each other. No provider takes as many, and no recursion through them ends early. */
const MOST_LEVELS = 500

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(levels - 1, member))
}

/** A mere list of fields is no schema: as JSON Schema it would let anything through. */
function checkKeywords(schema: object, where: string): void {
  const names = Object.keys(schema)
  if (names.length === 0 || names.some((name) => KEYWORDS.has(name) || /^(\$|x-)/.test(name))) return
  const hint = Object.values(schema).some(isStandardSchema) ? ' Put the fields into one: `z.object({ … })`.' : ''
  const message = `Expected ${where} to be a schema, got an object without a keyword of JSON Schema.${hint}`
  throw new HarnessError('invalid_options', message)
}

/** Every schema with any constraint has at least one of these keywords. */
const KEYWORDS = new Set(
  (
    'type properties required additionalProperties patternProperties propertyNames minProperties maxProperties items ' +
    'prefixItems enum const anyOf oneOf allOf not if then else dependentRequired dependentSchemas definitions ' +
    'unevaluatedProperties minimum maximum pattern format title description default examples deprecated'
  ).split(' '),
)

/** Documents that can be written as text. */
const documents = new WeakSet()

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function valueName(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'a list'
  return isObject(value) ? 'an object of a class' : `a ${typeof value}`
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const member of Object.values(value)) deepFreeze(member)
  return Object.freeze(value)
}
