import { isEndless, isList, mapSubschemas, pointerOf, pointerSteps, resolveReference } from './subschemas.js'
import type { JsonSchema, JsonValue } from '../util/json.js'

/**
 * A tool's schema without the parts for which providers reject the whole request: a list without `items` gets `items: {}`, and
 * a reference that leads nowhere, or only to itself, is left out, so that anything is accepted there. `onDangling` receives
 * each such reference.
 * Arguments are checked by the original schema.
 */
export function repairedSchema<T extends JsonSchema>(root: T, onDangling: (reference: string) => void): T {
  const repair = (schema: JsonSchema): JsonSchema => {
    const { $ref, ...rest } = mapSubschemas(schema, repair)
    const isDangling =
      typeof $ref === 'string' && (resolveReference(root, $ref) === undefined || isEndless(root, schema))
    if (isDangling) onDangling($ref)
    return {
      ...(typeof $ref === 'string' && !isDangling && { $ref: validPointer($ref) }),
      ...rest,
      ...(isListSchema(rest) && rest['items'] === undefined && { items: {} }),
    }
  }
  return repair(root) as T
}

function isListSchema({ type }: JsonSchema): boolean {
  const types: readonly JsonValue[] = isList(type) ? type : [type ?? null]
  return types.includes('array')
}

/** Some APIs reject a reference that is no valid URI. */
function validPointer(pointer: string): string {
  return /^#[\w$/.~-]*$/.test(pointer) ? pointer : pointerOf(pointerSteps(pointer))
}
