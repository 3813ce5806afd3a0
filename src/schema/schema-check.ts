import { schemaIssues } from './argument-issues.js'
import { isStandardSchema, jsonSchemaOf, parseTyped } from './schema.js'
import type { ParsedArguments, Schema } from './schema.js'
import { asPattern, boundedCheck, TooManySteps } from './bounded-check.js'
import { checkedKeywords } from './sound-schema.js'
import { isEndless, isSchema, mapSubschemas, schemasIn, withGatheredTargets, withoutKeywords } from './subschemas.js'
import type { ArgumentIssue } from './argument-issues.js'
import type { OutputUnit, SchemaDraft } from '@cfworker/json-schema'
import { messageOf, HarnessError } from '#contracts/errors.js'
import { isObject } from '#util/json.js'
import type { JsonSchema } from '#util/json.js'

/** The verdict of a JSON Schema. */
type SchemaProblems =
  | { readonly kind: 'valid' }
  | { readonly kind: 'invalid'; readonly issues: readonly ArgumentIssue[] }
  /** The schema itself cannot be used. */
  | { readonly kind: 'broken'; readonly message: string }

/**
 * Checks a value with an untrusted JSON Schema. Draft by `$schema`, else 2020-12. The check takes a bounded number of steps, whatever
 * the schema: a value that takes more (references that multiply, equal items among very many) is invalid. Nothing is measured in
 * time, so the verdict is the same on a busy machine. `format` is sent to the model and left to the tool to judge, the default of
 * JSON Schema; so is a `pattern` that is no regular expression of JavaScript, or that nothing can judge quickly.
 */
export async function schemaProblems(schema: JsonSchema, value: unknown): Promise<SchemaProblems> {
  try {
    const errors = validators.get(schema) ?? (await makeValidator(schema))
    const first = errors(value, true)
    if (first.length === 0) return VALID
    return {
      kind: 'invalid',
      issues: schemaIssues(
        allErrors(() => errors(value, false), first),
        value,
      ),
    }
  } catch (error) {
    return withoutVerdict(error)
  }
}

const VALID: SchemaProblems = { kind: 'valid' }

type Errors = (value: unknown, firstOnly: boolean) => OutputUnit[]

const validators = new WeakMap<JsonSchema, Errors>()

async function makeValidator(schema: JsonSchema): Promise<Errors> {
  // A library that cannot be loaded now may be later: that is no property of the schema.
  const { dereference, validate, format } = await import('@cfworker/json-schema')
  let made: Errors
  try {
    const whole = withGatheredTargets(schema)
    const { own, lookup } = dereferencedOwn(checkableSchema(whole, whole), dereference)
    const draft = draftOf(schema)
    acceptDangling(own, lookup)
    const check = await boundedCheck(own)
    made = (value, firstOnly) =>
      check(value, format, () => validate(value, own, draft, lookup, firstOnly).errors).map(asPattern)
  } catch (error) {
    if (isOutOfFiles(error)) throw error
    // The schema is broken, whatever the class of the error.
    const broken = new Error(messageOf(error))
    made = () => {
      throw broken
    }
  }
  validators.set(schema, made)
  return made
}

/** Names of parts that contradict each other are ignored. */
function dereferencedOwn<Lookup>(
  own: JsonSchema,
  dereference: (schema: JsonSchema) => Lookup,
): { readonly own: JsonSchema; readonly lookup: Lookup } {
  try {
    return { own, lookup: dereference(own) }
  } catch {
    const nameless = withoutNames(own)
    return { own: nameless, lookup: dereference(nameless) }
  }
}

function withoutNames(schema: JsonSchema): JsonSchema {
  return mapSubschemas(withoutKeywords(schema, ['$id', 'id', '$anchor']), withoutNames)
}

/** A reference that leads nowhere accepts anything, as in the schema that the model gets. */
function acceptDangling(schema: JsonSchema, lookup: Record<string, unknown>): void {
  for (const { $ref, __absolute_ref__: absolute = $ref } of schemasIn(schema))
    if (typeof absolute === 'string') lookup[absolute] ??= true
}

function withoutVerdict(error: unknown): SchemaProblems {
  if (error instanceof TooManySteps)
    return uncheckedProblem('too long or too complicated to be checked; send less at once')
  if (error instanceof RangeError)
    return uncheckedProblem('too large or too deeply nested to be checked; send less at once')
  if (error instanceof URIError) return uncheckedProblem('a field name in it is broken Unicode')
  if (isOutOfFiles(error)) return uncheckedProblem('not checked: this process has too many open files; try again later')
  return { kind: 'broken', message: messageOf(error) }
}

function isOutOfFiles(error: unknown): boolean {
  return isObject(error) && (error['code'] === 'EMFILE' || error['code'] === 'ENFILE')
}

function uncheckedProblem(message: string): SchemaProblems {
  return { kind: 'invalid', issues: [{ path: [], type: 'unchecked', message }] }
}

/** All errors; only the first if there are more than the validator's stack or the steps allow. */
function allErrors(errors: () => OutputUnit[], first: readonly OutputUnit[]): readonly OutputUnit[] {
  try {
    return errors()
  } catch {
    return first
  }
}

/** A copy, because the validator writes into it, without keywords that are not sound or not checked here. */
function checkableSchema(given: JsonSchema, root: JsonSchema): JsonSchema {
  const schema = checkedKeywords(given)
  const { pattern, patternProperties, $ref } = schema
  const unchecked = ['format']
  if ($ref !== undefined && isEndless(root, given)) unchecked.push('$ref')
  if (typeof pattern !== 'string' || !isRegExp(pattern)) unchecked.push('pattern')
  // Fields with names that cannot be distinguished are left to the tool.
  const isReadable = isSchema(patternProperties) && Object.keys(patternProperties).every(isRegExp)
  if (!isReadable) unchecked.push('patternProperties')
  if (!isReadable && patternProperties !== undefined) unchecked.push('additionalProperties', 'unevaluatedProperties')
  return mapSubschemas(withoutKeywords(schema, unchecked), (each) => checkableSchema(each, root))
}

function isRegExp(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u').source !== ''
  } catch {
    return false
  }
}

function draftOf(schema: JsonSchema): SchemaDraft {
  const { $schema } = schema
  if (typeof $schema !== 'string') return hasLimitsOfDraft4(schema) ? '4' : '2020-12'
  if (/draft-0[67]/.test($schema)) return '7'
  if ($schema.includes('draft-04')) return '4'
  return $schema.includes('2019-09') ? '2019-09' : '2020-12'
}

/** True for `exclusiveMinimum: true`, which many servers send without naming the draft. */
function hasLimitsOfDraft4(schema: JsonSchema): boolean {
  for (const { exclusiveMinimum, exclusiveMaximum } of schemasIn(schema)) {
    if (typeof exclusiveMinimum === 'boolean' || typeof exclusiveMaximum === 'boolean') return true
  }
  return false
}

/**
 * Parses a value with a schema; problems have the sentences of the validator. A typed schema parses (its defaults and transforms
 * apply); a JSON Schema document checks, and gives back the value itself.
 */
export async function parseWith<T>(schema: Schema<T>, value: unknown): Promise<ParsedArguments<T>> {
  const document = jsonSchemaOf(schema, 'a schema')
  if (isStandardSchema(schema)) return parseTyped<T>(schema, value)
  const problems = await schemaProblems(document, value)
  if (problems.kind === 'broken') throw new HarnessError('invalid_options', `Broken schema: ${problems.message}`)
  return problems.kind === 'valid' ? { ok: true, value: value as T } : { ok: false, issues: problems.issues }
}
