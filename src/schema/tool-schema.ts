import { isObject } from '#util/json.js'
import type { JsonObject, JsonSchema, JsonValue } from '#util/json.js'
import { modernSchema } from './answer-schema.js'
import { soundSchema } from './sound-schema.js'
import {
  resolveReference,
  withGatheredTargets,
  isEndless,
  isList,
  mapSubschemas,
  pointerOf,
  pointerSteps,
} from './subschemas.js'
import { warn } from '#util/platform/node.js'

/**
 * The schema of the tool `name` as APIs take it: an object at its root, with no `oneOf`, `anyOf`, `allOf`, `not` or `enum` there, which
 * OpenAI's and Anthropic's refuse. Alternatives at
 * the root become one object with the properties of all of them, required if all require them: more is let through
 * than the schema says, and the tool boundary checks the arguments by the schema itself. Other parts that APIs refuse are
 * repaired. A reference that leads nowhere, and keywords that are left out, are warnings of the process, once for each schema.
 */
export function inputSchema(given: JsonSchema, name: string): InputSchema {
  const known = made.get(given)
  if (known !== undefined) return known
  const dangling = new Set<string>()
  const leftOut = new Set<string>()
  const sound = soundSchema(withGatheredTargets(modernSchema(given)), (keyword) => leftOut.add(`\`${keyword}\``))
  const schema = repairedSchema(objectSchema(sound), (reference) => dangling.add(reference))
  for (const reference of dangling) {
    const message = `The schema of tool \`${name}\` has the reference \`${reference}\`, which leads nowhere: providers are sent {} in its place.`
    warn(message, 'SchemaWarning')
  }
  if (leftOut.size > 0) {
    const message = `The schema of tool \`${name}\` has keywords whose values JSON Schema does not allow: providers are not sent ${[...leftOut].join(', ')}.`
    warn(message, 'SchemaWarning')
  }
  made.set(given, schema)
  return schema
}

/**
 * The same for an API that rejects most characters in keys: properties with such keys are left out, at any depth, with a
 * warning of the process. Arguments may have them.
 */
export function acceptedSchema(given: JsonSchema, name: string): InputSchema {
  const schema = inputSchema(given, name)
  const known = accepted.get(schema)
  if (known !== undefined) return known
  const leftOut = new Set<string>()
  const short = withAcceptedKeys(schema, leftOut)
  if (leftOut.size > 0) {
    const keys = [...leftOut].map((key) => `\`${key}\``).join(', ')
    warn(`The schema of tool \`${name}\` has keys that this API rejects: it is not sent ${keys}.`, 'SchemaWarning')
  }
  accepted.set(schema, short)
  return short
}

function withAcceptedKeys(root: InputSchema, leftOut: Set<string>): InputSchema {
  const shorten = (schema: JsonSchema): JsonSchema => {
    const { properties, required, ...rest } = mapSubschemas(schema, shorten)
    if (!isObject(properties)) return required === undefined ? rest : { ...rest, required }
    const rejected = Object.keys(properties).filter((key) => !ACCEPTED_KEY.test(key))
    for (const key of rejected) leftOut.add(key)
    return {
      ...rest,
      ...(rejected.length > 0 && rest['additionalProperties'] === false && { additionalProperties: true }),
      properties: Object.fromEntries(entriesIn(properties).filter(([key]) => !rejected.includes(key))),
      ...(isList(required) && {
        required: required.filter((key) => typeof key !== 'string' || !rejected.includes(key)),
      }),
    }
  }
  const short = shorten(root) as InputSchema
  return leftOut.size === 0 ? root : repairedSchema(short, () => undefined)
}

/** The keys that every API accepts in a schema. */
const ACCEPTED_KEY = /^[a-zA-Z0-9_.-]{1,64}$/

const accepted = new WeakMap<InputSchema, InputSchema>()

type InputSchema = JsonObject & { readonly type: 'object' }

const made = new WeakMap<JsonSchema, InputSchema>()

function objectSchema(schema: JsonSchema): InputSchema {
  const { $ref, anyOf, oneOf, allOf, not, enum: options, const: constant, ...rest } = schema
  if ($ref === undefined && anyOf === undefined && oneOf === undefined && allOf === undefined) {
    return { ...rest, type: 'object', ...(rest['properties'] === undefined && { properties: {} }) }
  }
  const { properties, required } = schemaShape(schema, schema, new Set())
  return {
    ...rest,
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.size > 0 && { required: [...required] }),
  }
}

interface Shape {
  readonly properties: ReadonlyMap<string, JsonValue>
  readonly required: ReadonlySet<string>
}

const NO_SHAPE: Shape = { properties: new Map(), required: new Set() }

/** The properties of an object schema, those of its branches included. Each schema is looked at once, so that references cannot go in circles. */
function schemaShape(schema: unknown, root: JsonSchema, seen: Set<unknown>): Shape {
  if (!isObject(schema) || seen.has(schema)) return NO_SHAPE
  seen.add(schema)
  const shapes = (key: string): Shape[] => anyList(schema[key]).map((branch) => schemaShape(branch, root, seen))
  const own = {
    properties: new Map(entriesIn(schema['properties'])),
    required: new Set(stringList(schema['required'])),
  }
  const alternatives = [shapes('anyOf'), shapes('oneOf')].filter((branches) => branches.length > 0).map(eitherShape)
  return allShapes([
    own,
    schemaShape(localTarget(schema['$ref'], root), root, seen),
    ...shapes('allOf'),
    ...alternatives,
  ])
}

function allShapes(shapes: readonly Shape[]): Shape {
  return { properties: shapeProperties(shapes), required: new Set(shapes.flatMap(({ required }) => [...required])) }
}

function eitherShape(shapes: readonly Shape[]): Shape {
  const [first = NO_SHAPE, ...others] = shapes
  const required = [...first.required].filter((name) => others.every((shape) => shape.required.has(name)))
  return { properties: shapeProperties(shapes), required: new Set(required) }
}

/** The properties of all; one that differs between them may be either. */
function shapeProperties(shapes: readonly Shape[]): Map<string, JsonValue> {
  const forms = new Map<string, Map<string, JsonValue>>()
  for (const [name, form] of shapes.flatMap(({ properties }) => [...properties])) {
    const known = forms.get(name) ?? new Map<string, JsonValue>()
    forms.set(name, known.set(JSON.stringify(form), form))
  }
  return new Map([...forms].map(([name, known]) => [name, oneOrAny([...known.values()])]))
}

function oneOrAny(forms: readonly JsonValue[]): JsonValue {
  const [first = {}, ...others] = forms
  return others.length === 0 ? first : { anyOf: forms }
}

function localTarget(reference: unknown, root: JsonSchema): JsonSchema | undefined {
  return typeof reference === 'string' ? resolveReference(root, reference) : undefined
}

function anyList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : []
}

function stringList(value: unknown): string[] {
  return anyList(value).filter((item) => typeof item === 'string')
}

function entriesIn(value: unknown): [string, JsonValue][] {
  return isObject(value) ? Object.entries(value as Readonly<Record<string, JsonValue>>) : []
}

/**
 * A tool's schema without the parts for which providers reject the whole request: a list without `items` gets `items: {}`, and
 * a reference that leads nowhere, or only to itself, is left out, so that anything is accepted there. `onDangling` receives
 * each such reference.
 * Arguments are checked by the original schema.
 */
function repairedSchema<T extends JsonSchema>(root: T, onDangling: (reference: string) => void): T {
  const repair = (schema: JsonSchema): JsonSchema => {
    const { $ref, ...rest } = mapSubschemas(schema, repair)
    const isDangling =
      typeof $ref === 'string' && (resolveReference(root, $ref) === undefined || isEndless(root, schema))
    if (isDangling) onDangling($ref)
    return {
      ...(typeof $ref === 'string' && !isDangling && { $ref: validPointer($ref) }),
      ...rest,
      ...(isListSchema(rest) && rest['items'] === undefined && { items: {} }),
    }
  }
  return repair(root) as T
}

function isListSchema({ type }: JsonSchema): boolean {
  const types: readonly JsonValue[] = isList(type) ? type : [type ?? null]
  return types.includes('array')
}

/** Some APIs reject a reference that is no valid URI. */
function validPointer(pointer: string): string {
  return /^#[\w$/.~-]*$/.test(pointer) ? pointer : pointerOf(pointerSteps(pointer))
}
