import type { ToolDefinition } from '#core/model-session.js'
import { isList, isSchema, mapSubschemas, schemasIn } from '#schema/subschemas.js'
import type { JsonSchema } from '#util/json.js'

/** The description of a tool with its examples, for an API that has no field for them. */
export function describedTool({ description, examples = [] }: ToolDefinition): string {
  if (examples.length === 0) return description
  const lines = examples.map((example) => `- ${JSON.stringify(example)}`)
  return [...(description === '' ? [] : [description, '']), 'Examples of arguments:', ...lines].join('\n')
}

/**
 * The parameters of a strict tool as constrained decoding takes them, without the keywords that it does not enforce: arguments are
 * checked by the whole schema. Null for another tool, and for a schema with places that are open: optional fields, maps, values of any
 * kind.
 */
export function strictParameters({ strict, parameters }: ToolDefinition): JsonSchema | null {
  if (strict !== true || parameters['type'] !== 'object') return null
  const enforced = withEnforced(parameters)
  return [...schemasIn(enforced)].every(isClosed) ? enforced : null
}

/** The keywords that every provider with strict tools enforces, or at least takes. */
const ENFORCED = new Set([
  ...['type', 'properties', 'required', 'additionalProperties', 'items', 'enum', 'const', 'anyOf', '$ref', '$defs'],
  ...['title', 'description'],
])

function withEnforced(schema: JsonSchema): JsonSchema {
  const kept = Object.entries(mapSubschemas(schema, withEnforced)).filter(([keyword]) => ENFORCED.has(keyword))
  return Object.fromEntries(kept)
}

function isClosed(schema: JsonSchema): boolean {
  const { type, properties, required, additionalProperties, items, enum: options, const: only, anyOf, $ref } = schema
  const types = isList(type) ? type : [type]
  if (types.includes('object')) {
    if (!isSchema(properties) || additionalProperties !== false) return false
    return Object.keys(properties).every((name) => isList(required) && required.includes(name))
  }
  if (types.includes('array')) return isSchema(items)
  return [type, options, only, anyOf, $ref].some((keyword) => keyword !== undefined)
}
