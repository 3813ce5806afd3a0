import { isObject } from '#util/json.js'
import type { JsonObject, JsonSchema, JsonValue } from '#util/json.js'

/** The keywords of `responseJsonSchema` that the API enforces, without those below. */
const ENFORCED = new Set(
  '$id $defs $ref $anchor type format title enum items prefixItems minItems minimum maximum anyOf oneOf properties additionalProperties required propertyOrdering'.split(
    ' ',
  ),
)

/** Keywords whose values are schemas by name. */
const NAMED = new Set(['$defs', 'properties'])

/**
 * A schema as the API enforces it on a reply. Other constraints are added to the description, for the model to follow: the
 * output is checked against the original schema in any case. `maxItems` is one of them, although the API knows it: a few of
 * them make it refuse a schema as too large.
 */
export function answerSchema(schema: JsonSchema): JsonObject {
  const { $ref, description: given } = schema
  // A reference may have no neighbours.
  if (typeof $ref === 'string') return { $ref }
  const kept: [string, JsonValue][] = []
  const rest: string[] = []
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined || key === '$schema' || key === 'description') continue
    if (key === 'const' && schema['enum'] === undefined) kept.push(...constantOf(value, schema))
    else if (ENFORCED.has(key)) kept.push([key, innerSchemas(key, value)])
    else rest.push(`${key}: ${JSON.stringify(value)}`)
  }
  const text = typeof given === 'string' ? given : ''
  const description = rest.length === 0 ? text : `${text === '' ? '' : `${text}\n\n`}{${rest.join(', ')}}`
  return { ...Object.fromEntries(kept), ...(description !== '' && { description }) }
}

/** The API has no `const`; an `enum` may hold strings and numbers. */
function constantOf(value: JsonValue, { type }: JsonSchema): [string, JsonValue][] {
  const kind = value === null ? 'null' : typeof value
  const named: [string, JsonValue][] = type === undefined ? [['type', kind]] : []
  return kind === 'string' || kind === 'number' ? [...named, ['enum', [value]]] : named
}

function innerSchemas(key: string, value: JsonValue): JsonValue {
  if (!NAMED.has(key)) return key === 'enum' || key === 'required' ? value : innerSchema(value)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]) => (each === undefined ? [] : [[name, innerSchema(each)]])),
  )
}

function innerSchema(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(innerSchema)
  return isObject(value) ? answerSchema(value) : value
}
