import { isList, isSchema, mapSubschemas, pointerSteps, schemasIn } from './subschemas.js'
import type { JsonSchema, JsonValue } from '../util/json.js'
import { sentKey } from './sent-keys.js'

/**
 * A tool's schema with accepted keys in place of those that Anthropic's API rejects, at any depth. A replaced property is described
 * by its own key. The tool boundary reads arguments under either key.
 */
export function withAcceptedKeys<T extends JsonSchema>(root: T): T {
  const rename = (given: JsonSchema): JsonSchema => {
    const schema = mapSubschemas(given, rename)
    const { $ref, properties, required } = schema
    return {
      ...schema,
      ...(typeof $ref === 'string' && $ref.startsWith('#/') && { $ref: renamedPointer($ref) }),
      ...(isSchema(properties) && { properties: Object.fromEntries(Object.entries(properties).map(renamedProperty)) }),
      ...(isList(required) && { required: required.map((key) => (typeof key === 'string' ? sentKey(key) : key)) }),
    }
  }
  // Most schemas are as they should be.
  return hasReplacedKeys(root) ? (rename(root) as T) : root
}

function hasReplacedKeys(schema: JsonSchema): boolean {
  for (const { properties } of schemasIn(schema))
    if (isSchema(properties) && Object.keys(properties).some((key) => sentKey(key) !== key)) return true
  return false
}

function renamedProperty([key, schema]: [string, JsonValue | undefined]): [string, JsonValue | undefined] {
  const sent = sentKey(key)
  if (sent === key || !isSchema(schema)) return [sent, schema]
  const { description } = schema
  return [sent, { ...schema, description: typeof description === 'string' ? `${key}: ${description}` : key }]
}

/** A reference into `properties` follows their keys. */
function renamedPointer(pointer: string): string {
  const steps = pointerSteps(pointer)
  const renamed = steps.map((step, index) => (steps[index - 1] === 'properties' ? sentKey(step) : step))
  if (renamed.every((step, index) => step === steps[index])) return pointer
  return `#${renamed.map((step) => `/${encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('')}`
}
