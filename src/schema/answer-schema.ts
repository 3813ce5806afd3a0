import { inlinedSchema } from './clean-schema.js'
import { describedAsEvidence } from './evidence.js'
import { isList, isSchema, mapSubschemas, withoutKeywords } from './subschemas.js'
import { isObject } from '#util/json.js'
import type { JsonSchema, JsonValue, JsonObject } from '#util/json.js'

/**
 * A schema as an answer of it is asked for: references inlined but for recursive ones, parts that all hold joined, objects
 * closed that say nothing of further properties, evidence explained. Answers are checked by the schema itself, not by
 * this. Throws a `RangeError` for a reference that leads nowhere.
 */
export function answerDocument(schema: JsonSchema): JsonSchema {
  return closedSchema(joinedAllOf(modernSchema(inlinedSchema(schema))))
}

/** `document` with every object in it closed that says nothing of further properties. */
export function closedSchema(document: JsonSchema): JsonSchema {
  const { allOf, ...rest } = document
  const schema = mapSubschemas(rest, closedSchema)
  // Each of several parts that all hold has properties that another would forbid.
  const isOpen = schema['properties'] !== undefined && schema['additionalProperties'] === undefined
  if (allOf !== undefined) return { ...schema, allOf }
  return isOpen ? { ...schema, additionalProperties: false } : schema
}

/** An object with the value as its only member: for providers that require an object at the root. */
export function wrappedAnswer(document: JsonSchema): JsonSchema {
  const { $defs, ...value } = document
  return {
    type: 'object',
    properties: { value },
    required: ['value'],
    additionalProperties: false,
    ...($defs !== undefined && { $defs }),
  }
}

/** The same JSON with the keys of every object in order. */
export function sortedKeys(value: JsonValue | undefined): JsonValue {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(sortedKeys)
  if (!isObject(value)) return value ?? null
  const keys = Object.keys(value).sort()
  return Object.fromEntries(keys.map((key) => [key, sortedKeys((value as Record<string, JsonValue>)[key])]))
}

/** `allOf` as one schema, if its parts do not concern the same keywords; siblings of alternatives are moved into each of them. */
function joinedAllOf(schema: JsonSchema): JsonSchema {
  const { allOf, ...own } = mapSubschemas(describedAsEvidence(schema), joinedAllOf)
  if (!isList(allOf)) return withinBranches(own)
  const parts: readonly JsonValue[] = [own, ...allOf]
  const whole = parts.reduce<JsonSchema | null>((sum, part) => (isSchema(part) ? joinedWith(sum, part) : null), {})
  return withinBranches(whole ?? { ...own, allOf })
}

function withinBranches(schema: JsonSchema): JsonSchema {
  const { anyOf, oneOf, description, $defs, ...siblings } = schema
  const branches = anyOf ?? oneOf
  if (siblings['properties'] === undefined || !isList(branches) || (anyOf !== undefined && oneOf !== undefined))
    return schema
  return {
    ...(description !== undefined && { description }),
    [anyOf === undefined ? 'oneOf' : 'anyOf']: branches.map((branch) =>
      isSchema(branch) ? bothSchemas(siblings, branch) : branch,
    ),
    ...($defs !== undefined && { $defs }),
  }
}

/** A branch with its siblings. */
export function bothSchemas(siblings: JsonSchema, branch: JsonSchema): JsonSchema {
  const { properties, required } = siblings
  const own = branch['properties']
  const names = [...listOrEmpty(required), ...listOrEmpty(branch['required'])]
  return {
    ...siblings,
    ...branch,
    ...(isSchema(properties) && { properties: { ...properties, ...(isSchema(own) && own) } }),
    ...(names.length > 0 && { required: [...new Set(names)] }),
  }
}

/** Null if two parts contradict each other, or if a closed one forbids properties of another. */
function joinedWith(sum: JsonSchema | null, part: JsonSchema): JsonSchema | null {
  if (sum === null) return null
  const forbids = (one: JsonSchema, other: JsonSchema): boolean =>
    one['additionalProperties'] === false && other['properties'] !== undefined
  if (forbids(sum, part) || forbids(part, sum)) return null
  const properties = joinedProperties(sum['properties'], part['properties'])
  if (properties === null) return null
  const required = [...listOrEmpty(sum['required']), ...listOrEmpty(part['required'])]
  const [others, more] = [sum, part].map((each) => withoutKeywords(each, ['properties', 'required']))
  const isAgreed = Object.entries(more ?? {}).every(
    ([key, value]) => others?.[key] === undefined || JSON.stringify(others[key]) === JSON.stringify(value),
  )
  if (!isAgreed) return null
  return {
    ...others,
    ...more,
    ...(properties !== undefined && { properties }),
    ...(required.length > 0 && { required: [...new Set(required)] }),
  }
}

function joinedProperties(left: JsonValue | undefined, right: JsonValue | undefined): JsonSchema | null | undefined {
  if (!isSchema(left)) return isSchema(right) ? right : undefined
  if (!isSchema(right)) return left
  const differs = Object.entries(right).some(
    ([name, value]) => Object.hasOwn(left, name) && JSON.stringify(left[name]) !== JSON.stringify(value),
  )
  return differs ? null : { ...left, ...right }
}

function listOrEmpty(value: JsonValue | undefined): readonly JsonValue[] {
  return isList(value) ? value : []
}

/**
 * A schema of an older draft in the words of 2020-12, the only ones that providers read: lists of `items` are `prefixItems`,
 * exclusive limits are numbers, `$schema` is left out. Made once a schema.
 */
export function modernSchema(schema: JsonSchema): JsonSchema {
  const known = made.get(schema)
  if (known !== undefined) return known
  const modern = renewedSchema(schema)
  made.set(schema, modern)
  return modern
}

const made = new WeakMap<JsonSchema, JsonSchema>()

function renewedSchema(schema: JsonSchema): JsonSchema {
  const { $schema, items, additionalItems, exclusiveMinimum, exclusiveMaximum, minimum, maximum, ...rest } = schema
  const members = Object.entries(rest).map(([keyword, value]) => [keyword, renewedMember(keyword, value)])
  const isTuple = Array.isArray(items)
  const others = isTuple ? additionalItems : items
  return {
    ...(Object.fromEntries(members) as JsonObject),
    ...modernLimit('minimum', minimum, exclusiveMinimum),
    ...modernLimit('maximum', maximum, exclusiveMaximum),
    ...(isTuple && { prefixItems: renewedValue(items as JsonValue) }),
    ...(others !== undefined && { items: renewedValue(others) }),
  }
}

function modernLimit(
  name: 'minimum' | 'maximum',
  bound: JsonValue | undefined,
  exclusive: JsonValue | undefined,
): JsonObject {
  const exclusiveName = name === 'minimum' ? 'exclusiveMinimum' : 'exclusiveMaximum'
  if (exclusive === true) return bound === undefined ? {} : { [exclusiveName]: bound }
  return {
    ...(bound !== undefined && { [name]: bound }),
    ...(typeof exclusive === 'number' && { [exclusiveName]: exclusive }),
  }
}

const DATA = new Set(['enum', 'const', 'default', 'examples', 'required', 'dependentRequired'])
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'])

function renewedMember(keyword: string, value: JsonValue | undefined): JsonValue | undefined {
  if (value === undefined || DATA.has(keyword)) return value
  if (!NAMED.has(keyword) || !isObject(value)) return renewedValue(value)
  const named = Object.entries(value as Readonly<Record<string, JsonValue>>)
  return Object.fromEntries(named.map(([name, each]) => [name, renewedValue(each)]))
}

function renewedValue(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(renewedValue)
  return isObject(value) ? renewedSchema(value) : value
}
