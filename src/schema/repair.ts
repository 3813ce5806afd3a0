import { isList, mapSubschemas, resolveReference } from './subschemas.js'
import type { JsonSchema, JsonValue } from '../util/json.js'

/**
 * A tool's schema without the parts for which providers reject the whole request: a list without `items` gets `items: {}`,
 * and a reference that leads nowhere is left out, so that anything is accepted there. `onDangling` receives each such
 * reference. Arguments are checked by the original schema.
 */
export function repairedSchema<T extends JsonSchema>(root: T, onDangling: (reference: string) => void): T {
  const repair = (schema: JsonSchema): JsonSchema => {
    const { $ref, ...rest } = mapSubschemas(schema, repair)
    const isDangling = typeof $ref === 'string' && resolveReference(root, $ref) === undefined
    if (isDangling) onDangling($ref)
    return {
      ...($ref !== undefined && !isDangling && { $ref }),
      ...rest,
      ...(isListSchema(rest) && rest['items'] === undefined && rest['prefixItems'] === undefined && { items: {} }),
    }
  }
  return repair(root) as T
}

function isListSchema({ type }: JsonSchema): boolean {
  const types: readonly JsonValue[] = isList(type) ? type : [type ?? null]
  return types.includes('array')
}
