import type * as Vm from 'node:vm'
import { schemaIssues } from './argument-issues.js'
import { isStandardSchema, jsonSchemaOf, parseTyped } from './schema.js'
import type { ParsedArguments, Schema } from './schema.js'
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
 * Checks a value with an untrusted JSON Schema. Draft by `$schema`, else 2020-12. The check of one value takes
 * at most 500 ms, whatever the schema: a value that cannot be checked in that time (a `pattern` that backtracks without
 * end, `uniqueItems` of a huge list, references that multiply) is invalid. `format` is sent to the model and left to the
 * tool to judge, the default of JSON Schema; so is a `pattern` that is no regular expression of JavaScript. `chars`: the
 * length of the value as JSON text, if known.
 */
export async function schemaProblems(schema: JsonSchema, value: unknown, chars = Infinity): Promise<SchemaProblems> {
  try {
    let validator = validators.get(schema)
    if (validator === undefined) validators.set(schema, (validator = await makeValidator(schema)))
    const { errors, isSlow } = validator
    const isBoxed = isSlow || (chars > MANY_VALUES && hasMany(value))
    const first = isBoxed ? (await openTimeBox())(() => errors(value, true), LONGEST_CHECK_MS) : errors(value, true)
    if (first.length === 0) return VALID
    const all = await allErrors(() => errors(value, false), first)
    return { kind: 'invalid', issues: schemaIssues(all, value) }
  } catch (error) {
    return withoutVerdict(error)
  }
}

const VALID: SchemaProblems = { kind: 'valid' }

/** For the verdict, in ms. */
const LONGEST_CHECK_MS = 500
/** For finding all errors, in ms; after that, only the first is reported. */
const LONGEST_SEARCH_MS = 100
/** Most values in the input; checks of larger inputs may take long. */
const MANY_VALUES = 10_000

interface Validator {
  readonly errors: (value: unknown, firstOnly: boolean) => OutputUnit[]
  /** The schema has keywords whose check may take long. */
  readonly isSlow: boolean
}

const validators = new WeakMap<JsonSchema, Validator>()

async function makeValidator(schema: JsonSchema): Promise<Validator> {
  try {
    const { dereference, validate } = await import('@cfworker/json-schema')
    const whole = withGatheredTargets(schema)
    const { own, lookup } = dereferencedOwn(checkableSchema(whole, whole), dereference)
    const draft = draftOf(schema)
    acceptDangling(own, lookup)
    return {
      errors: (value, firstOnly) => validate(value, own, draft, lookup, firstOnly).errors,
      isSlow: mayTakeLong(own),
    }
  } catch (error) {
    // The schema is broken, whatever the class of the error.
    const broken = new Error(messageOf(error))
    return {
      errors: () => {
        throw broken
      },
      isSlow: false,
    }
  }
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
  if (error instanceof TimeBoxError)
    return uncheckedProblem('too long or too complicated to be checked; send less at once')
  if (error instanceof RangeError)
    return uncheckedProblem('too large or too deeply nested to be checked; send less at once')
  if (error instanceof URIError) return uncheckedProblem('a field name in it is broken Unicode')
  return { kind: 'broken', message: messageOf(error) }
}

function uncheckedProblem(message: string): SchemaProblems {
  return { kind: 'invalid', issues: [{ path: [], type: 'unchecked', message }] }
}

/** All errors; only the first if there are more than the validator's stack or the time allows. */
async function allErrors(errors: () => OutputUnit[], first: readonly OutputUnit[]): Promise<readonly OutputUnit[]> {
  try {
    return (await openTimeBox())(errors, LONGEST_SEARCH_MS)
  } catch {
    return first
  }
}

function hasMany(value: unknown): boolean {
  const open = [value]
  for (let count = 0; open.length > 0; count++) {
    if (count + open.length > MANY_VALUES) return true
    const next = open.pop()
    const members: unknown[] = Array.isArray(next) ? next : isObject(next) ? Object.values(next) : []
    if (members.length > MANY_VALUES) return true
    open.push(...members)
  }
  return false
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

const SLOW_KEYWORDS = ['pattern', 'patternProperties', 'uniqueItems', '$ref', '$recursiveRef']

function mayTakeLong(schema: JsonSchema): boolean {
  for (const each of schemasIn(schema)) if (SLOW_KEYWORDS.some((keyword) => each[keyword] !== undefined)) return true
  return false
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

/** Runs work that cannot be trusted to end. */
type TimeBox = <T>(work: () => T, ms: number) => T

/** Thrown by a time box whose work did not end in time. */
class TimeBoxError extends Error {
  override readonly name = 'TimeBoxError'
}

/**
 * Runs synchronous work that is stopped, regular expressions included, after a given time in ms. One use costs about
 * 0.1 ms. V8 stops the work between two of its own steps: a change that was half made stays half made. Browsers and workers
 * cannot stop work: there it has no limit of time.
 */
function openTimeBox(): Promise<TimeBox> {
  opened ??= makeTimeBox()
  return opened
}

let opened: Promise<TimeBox> | undefined

async function makeTimeBox(): Promise<TimeBox> {
  try {
    return timeBox(await import('node:vm'))
  } catch {
    return (work) => work()
  }
}

function timeBox({ createContext, Script }: typeof Vm): TimeBox {
  const inside: { work?: () => unknown } = {}
  const context = createContext(inside)
  const script = new Script('work()')
  return <T>(work: () => T, ms: number): T => {
    inside.work = work
    try {
      return script.runInContext(context, { timeout: ms }) as T
    } catch (error) {
      if (!isTimeout(error)) throw error
      throw new TimeBoxError(`It took longer than ${ms} ms.`, { cause: error })
    } finally {
      delete inside.work
    }
  }
}

/** By its code: the error belongs to the other context and is no `Error` of this one. */
function isTimeout(error: unknown): boolean {
  return isObject(error) && error['code'] === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
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
