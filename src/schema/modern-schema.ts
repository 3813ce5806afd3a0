import { isObject } from '#util/json.js'
import type { JsonObject, JsonSchema, JsonValue } from '#util/json.js'

/**
 * A schema of an older draft in the words of 2020-12, the only ones that providers read: lists of `items` are `prefixItems`,
 * exclusive limits are numbers, `$schema` is left out. Made once a schema.
 */
export function modernSchema(schema: JsonSchema): JsonSchema {
  const known = made.get(schema)
  if (known !== undefined) return known
  const modern = renewed(schema)
  made.set(schema, modern)
  return modern
}

const made = new WeakMap<JsonSchema, JsonSchema>()

function renewed(schema: JsonSchema): JsonSchema {
  const { $schema, items, additionalItems, exclusiveMinimum, exclusiveMaximum, minimum, maximum, ...rest } = schema
  const members = Object.entries(rest).map(([keyword, value]) => [keyword, renewedMember(keyword, value)])
  const isTuple = Array.isArray(items)
  const others = isTuple ? additionalItems : items
  return {
    ...(Object.fromEntries(members) as JsonObject),
    ...limit('minimum', minimum, exclusiveMinimum),
    ...limit('maximum', maximum, exclusiveMaximum),
    ...(isTuple && { prefixItems: renewedValue(items as JsonValue) }),
    ...(others !== undefined && { items: renewedValue(others) }),
  }
}

function limit(
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
  return isObject(value) ? renewed(value) : value
}
