import { mapSubschemas, schemasIn } from '../tools/subschemas.js'
import { isObject } from '../util/json.js'
import type { JsonSchema, JsonValue } from '../util/json.js'

/** `document` with every object in it closed that says nothing of further properties. */
export function closed(document: JsonSchema): JsonSchema {
  const schema = mapSubschemas(document, closed)
  const isOpen = schema['properties'] !== undefined && schema['additionalProperties'] === undefined
  return isOpen ? { ...schema, additionalProperties: false } : schema
}

/** An object with the value as its only member: for places where a schema's root must be an object. */
export function wrapped(document: JsonSchema): JsonSchema {
  const { $defs, ...value } = document
  return {
    type: 'object',
    properties: { value },
    required: ['value'],
    additionalProperties: false,
    ...($defs !== undefined && { $defs }),
  }
}

/** Whether strict modes can take it: every object names all its properties as required and forbids others (spec §9.3). */
export function isStrict(document: JsonSchema): boolean {
  const objects = [...schemasIn(document)].filter((schema) => schema['type'] === 'object')
  return objects.length > 0 && objects.every(isStrictObject)
}

function isStrictObject({ properties, required, additionalProperties }: JsonSchema): boolean {
  const names = isObject(properties) ? Object.keys(properties) : []
  const listed = Array.isArray(required) ? required : []
  return additionalProperties === false && names.every((name) => listed.includes(name))
}

/** The same JSON with the keys of every object in order. */
export function sortedKeys(value: JsonValue | undefined): JsonValue {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(sortedKeys)
  if (!isObject(value)) return value ?? null
  const keys = Object.keys(value).sort()
  return Object.fromEntries(keys.map((key) => [key, sortedKeys((value as Record<string, JsonValue>)[key])]))
}
