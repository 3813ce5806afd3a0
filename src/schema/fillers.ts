import { isList, isSchema, resolveReference } from './subschemas.js'
import type { JsonObject, JsonSchema, JsonValue } from '../util/json.js'

/**
 * An answer that was given by the strict form of `root`, without the nulls that stand there for properties that are
 * absent. A null that the schema itself takes stays.
 */
export function withoutFillers(root: JsonSchema, value: JsonValue): JsonValue {
  return clean([root], value, 0)

  function clean(stated: readonly JsonSchema[], here: JsonValue, depth: number): JsonValue {
    if (typeof here !== 'object' || here === null || depth > DEEPEST) return here
    const schemas = formsOf(root, stated, here)
    if (isList(here)) return here.map((item, index) => clean(itemsAt(schemas, index), item, depth + 1))
    const kept = Object.entries(here as Readonly<Record<string, JsonValue>>).flatMap(([name, member]) => {
      const inner = schemas.map((schema) => ({ schema, own: propertyAt(schema, name) }))
      if (member === null && inner.length > 0 && inner.every(({ schema, own }) => isFiller(schema, name, own)))
        return []
      return [
        [
          name,
          clean(
            inner.flatMap(({ own }) => (isSchema(own) ? [own] : [])),
            member,
            depth + 1,
          ),
        ] as const,
      ]
    })
    return Object.fromEntries(kept)
  }

  function isFiller(schema: JsonSchema, name: string, own: JsonValue | undefined): boolean {
    const { required } = schema
    return isSchema(own) && !(isList(required) && required.includes(name)) && !takesNull(root, own)
  }
}

/** Deeper answers are read unchanged. */
const DEEPEST = 500

/** The schemas that `value` can have been given by, of those that are stated and those that they choose between. */
function formsOf(
  root: JsonSchema,
  stated: readonly JsonSchema[],
  value: JsonObject | readonly JsonValue[],
): JsonSchema[] {
  const found = new Set(stated)
  const forms: JsonSchema[] = []
  // Items that are added during the iteration are visited too.
  for (const schema of found) {
    const { $ref, anyOf, oneOf, allOf } = schema
    const target = typeof $ref === 'string' ? resolveReference(root, $ref) : undefined
    const others = [target, ...[anyOf, oneOf, allOf].flatMap((list) => (isList(list) ? list : []))].filter(isSchema)
    for (const each of others) found.add(each)
    if (
      isList(value) ? schema['items'] !== undefined || schema['prefixItems'] !== undefined : isFormOf(schema, value)
    ) {
      forms.push(schema)
    }
  }
  return forms
}

/** A strict form has all its properties, so that property names and constants identify the alternative. */
function isFormOf({ properties, additionalProperties }: JsonSchema, value: JsonObject | readonly JsonValue[]): boolean {
  if (!isSchema(properties)) return isSchema(additionalProperties)
  const isKnown = additionalProperties !== false || Object.keys(value).every((name) => Object.hasOwn(properties, name))
  return isKnown && Object.entries(properties).every(([name, each]) => isPossible(each, (value as JsonObject)[name]))
}

function isPossible(schema: JsonValue | undefined, value: JsonValue | undefined): boolean {
  if (!isSchema(schema) || value === undefined || typeof value === 'object') return true
  const { const: constant, enum: options } = schema
  return (constant === undefined || constant === value) && (!isList(options) || options.includes(value))
}

function propertyAt({ properties, additionalProperties }: JsonSchema, name: string): JsonValue | undefined {
  return isSchema(properties) && Object.hasOwn(properties, name) ? properties[name] : additionalProperties
}

function itemsAt(schemas: readonly JsonSchema[], index: number): JsonSchema[] {
  return schemas.flatMap(({ items, prefixItems, additionalItems }) => {
    const inPlace = isList(prefixItems) ? prefixItems : isList(items) ? items : []
    const found = inPlace[index] ?? (isList(items) ? additionalItems : items)
    return isSchema(found) ? [found] : []
  })
}

/** True if a schema lets null through, as far as is known without validation. */
function takesNull(root: JsonSchema, schema: JsonSchema): boolean {
  const open = new Set([schema])
  for (const { $ref, type, enum: options, const: constant, anyOf, oneOf, allOf } of open) {
    if (type === 'null' || (isList(type) && type.includes('null')) || constant === null) return true
    if (isList(options) && options.includes(null)) return true
    const target = typeof $ref === 'string' ? resolveReference(root, $ref) : undefined
    const others = [target, ...[anyOf, oneOf, allOf].flatMap((list) => (isList(list) ? list : []))]
    if (others.includes(true)) return true
    const keywords = [$ref, type, options, constant, anyOf, oneOf, allOf]
    if (keywords.every((keyword) => keyword === undefined)) return true
    for (const each of others) if (isSchema(each)) open.add(each)
  }
  return false
}
