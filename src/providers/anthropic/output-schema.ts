import { isObject } from '../../util/json.js'
import type { JsonObject, JsonSchema, JsonValue } from '../../util/json.js'

/** Keywords whose values are schemas by name. */
const NAMED_SCHEMAS = new Set(['properties', '$defs', 'definitions'])

/** Constraints that the API does not enforce, and rejects. */
const UNENFORCED = new Set([
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
])

const FORMATS = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'])

/**
 * A schema as the API enforces it on a reply. Unsupported constraints are added to the description, for the model to
 * follow: the output is checked against the original schema in any case.
 */
export function outputSchema(schema: JsonSchema): JsonObject {
  const kept: [string, JsonValue][] = []
  const rest: string[] = []
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined || key === '$schema' || key === 'description') continue
    if (isEnforced(key, value)) kept.push([key === 'oneOf' ? 'anyOf' : key, inner(key, value)])
    else rest.push(`${key}: ${JSON.stringify(value)}`)
  }
  const description = described(schema['description'], rest)
  return { ...Object.fromEntries(kept), ...(description !== '' && { description }) }
}

function isEnforced(key: string, value: JsonValue): boolean {
  if (key === 'format') return typeof value === 'string' && FORMATS.has(value)
  if (key === 'minItems') return value === 0 || value === 1
  return !UNENFORCED.has(key)
}

function inner(key: string, value: JsonValue): JsonValue {
  if (NAMED_SCHEMAS.has(key) && isObject(value)) return mapValues(value, schemaOrValue)
  if (key === 'items' || key === 'anyOf' || key === 'oneOf' || key === 'allOf') return schemaOrValue(value)
  return value
}

function schemaOrValue(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(schemaOrValue)
  return isObject(value) ? outputSchema(value) : value
}

function mapValues(object: JsonObject, change: (value: JsonValue) => JsonValue): JsonObject {
  return Object.fromEntries(
    Object.entries(object).flatMap(([key, value]) => (value === undefined ? [] : [[key, change(value)]])),
  )
}

function described(description: JsonValue | undefined, rest: readonly string[]): string {
  const text = typeof description === 'string' ? description : ''
  if (rest.length === 0) return text
  return `${text === '' ? '' : `${text}\n\n`}{${rest.join(', ')}}`
}
