import { isList, isSchema, memberSchemas, withAlternatives } from './subschemas.js'
import type { JsonObject, JsonSchema, JsonValue } from '#util/json.js'

/**
 * An answer that was given by the strict form of `root`, without the nulls that stand there for properties that are
 * absent. A null that the schema itself takes stays.
 */
export function withoutFillers(root: JsonSchema, value: JsonValue): JsonValue {
  return clean([root], value, 0)

  function clean(stated: readonly JsonSchema[], here: JsonValue, depth: number): JsonValue {
    if (typeof here !== 'object' || here === null || depth > DEEPEST) return here
    const schemas = matchingForms(root, stated, here)
    if (isList(here)) return here.map((item, index) => clean(memberSchemas(schemas, index), item, depth + 1))
    const kept: [string, JsonValue][] = []
    for (const [name, member] of Object.entries(here as Readonly<Record<string, JsonValue>>)) {
      const isFilled = member === null && schemas.length > 0 && schemas.every((schema) => isFiller(schema, name))
      if (!isFilled) kept.push([name, clean(memberSchemas(schemas, name), member, depth + 1)])
    }
    return Object.fromEntries(kept)
  }

  function isFiller(schema: JsonSchema, name: string): boolean {
    const { required } = schema
    const [own] = memberSchemas([schema], name)
    return own !== undefined && !(isList(required) && required.includes(name)) && !takesNull(root, own)
  }
}

/** Deeper answers are read unchanged. */
const DEEPEST = 500

/** The schemas that `value` can have been given by, of those that are stated and those that they choose between. */
function matchingForms(
  root: JsonSchema,
  stated: readonly JsonSchema[],
  value: JsonObject | readonly JsonValue[],
): JsonSchema[] {
  return [...withAlternatives(root, stated)].filter((schema) =>
    isList(value) ? schema['items'] !== undefined || schema['prefixItems'] !== undefined : isFormOf(schema, value),
  )
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

/** True if a schema lets null through, as far as is known without validation. */
function takesNull(root: JsonSchema, schema: JsonSchema): boolean {
  return [...withAlternatives(root, [schema])].some(takesNullItself)
}

function takesNullItself({ $ref, type, enum: options, const: constant, anyOf, oneOf, allOf }: JsonSchema): boolean {
  if (type === 'null' || (isList(type) && type.includes('null')) || constant === null) return true
  if (isList(options) && options.includes(null)) return true
  const branches = [anyOf, oneOf, allOf]
  if (branches.some((list) => isList(list) && list.includes(true))) return true
  return [$ref, type, options, constant, ...branches].every((keyword) => keyword === undefined)
}
