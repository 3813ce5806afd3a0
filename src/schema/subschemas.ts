import { isObject } from '#util/json.js'
import type { JsonSchema, JsonValue } from '#util/json.js'

/**
 * `schema` with each of its direct subschemas replaced by the result of `change`; data such as `enum`, `const` and
 * `default` stays as it is. `true` and `false` in the place of a schema are left alone.
 */
export function mapSubschemas(schema: JsonSchema, change: (subschema: JsonSchema) => JsonValue): JsonSchema {
  const changedMember = (value: JsonValue): JsonValue => (isSchema(value) ? change(value) : value)
  return Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => {
      if (value === undefined) return [keyword, value]
      if (MAPS.has(keyword) && isSchema(value)) {
        return [
          keyword,
          Object.fromEntries(Object.entries(value).map(([name, each]) => [name, changedMember(each ?? true)])),
        ]
      }
      if (LISTS.has(keyword) && isList(value)) return [keyword, value.map(changedMember)]
      return [keyword, SINGLE.has(keyword) ? changedMember(value) : value]
    }),
  )
}

/** Every schema inside `schema`, itself first. References are not followed. */
export function* schemasIn(schema: JsonSchema): Generator<JsonSchema> {
  yield schema
  const direct: JsonSchema[] = []
  mapSubschemas(schema, (subschema) => (direct.push(subschema), subschema))
  for (const subschema of direct) yield* schemasIn(subschema)
}

/** The target of a local reference such as `#/$defs/Node` in `root`; `undefined` if there is none. */
export function resolveReference(root: JsonSchema, reference: string): JsonSchema | undefined {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined
  const found = valueAtPointer(root, reference)
  return isSchema(found) ? found : undefined
}

/** The steps of a JSON Pointer in its URI form, such as `#/properties/a~1b`. */
export function pointerSteps(pointer: string): string[] {
  return pointer.split('/').slice(1).map(decodeStep)
}

/** The JSON Pointer of `steps`, in its URI form. */
export function pointerOf(steps: readonly string[]): string {
  const encoded = (step: string): string =>
    encodeURIComponent(step.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1')).replaceAll('%24', '$')
  return `#${steps.map((step) => `/${encoded(step)}`).join('')}`
}

/** `root` with the targets of references that no keyword holds, such as `#/components/schemas/Pet`, under `$defs`. */
export function withGatheredTargets(root: JsonSchema): JsonSchema {
  const held = new Set(schemasIn(root))
  const gathered = new Map<JsonSchema, string>()
  const definitions: Record<string, JsonSchema> = {}
  const definitionName = (target: JsonSchema): string => {
    const known = gathered.get(target)
    if (known !== undefined) return known
    const name = `gathered_${gathered.size + 1}`
    gathered.set(target, name)
    definitions[name] = gather(target)
    return name
  }
  const gather = (schema: JsonSchema): JsonSchema => {
    const members = mapSubschemas(schema, gather)
    const target = typeof schema['$ref'] === 'string' ? resolveReference(root, schema['$ref']) : undefined
    if (target === undefined || held.has(target)) return members
    return { ...members, $ref: `#/$defs/${definitionName(target)}` }
  }
  const whole = gather(root)
  if (gathered.size === 0) return root
  const { $defs } = whole
  return { ...whole, $defs: { ...(isSchema($defs) && $defs), ...definitions } }
}

/** True if the reference of `schema` leads to the same place of the value again and again: it describes nothing. */
export function isEndless(root: JsonSchema, schema: JsonSchema): boolean {
  const reached = new Set<JsonSchema>()
  const open = schemasInPlace(root, schema)
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next === schema) return true
    if (reached.has(next)) continue
    reached.add(next)
    open.push(...schemasInPlace(root, next))
  }
  return false
}

/** The schemas that a value is checked by because it is checked by `schema`. */
function schemasInPlace(root: JsonSchema, schema: JsonSchema): JsonSchema[] {
  const { not, if: condition, then, else: otherwise, dependentSchemas: forms } = schema
  const others = [not, condition, then, otherwise, ...Object.values(isSchema(forms) ? forms : {})]
  return [...alternativesOf(root, schema), ...others.filter(isSchema)]
}

/** The schemas that `schema` refers to and chooses between for the same value. */
export function alternativesOf(root: JsonSchema, { $ref, allOf, anyOf, oneOf }: JsonSchema): JsonSchema[] {
  const target = typeof $ref === 'string' ? resolveReference(root, $ref) : undefined
  const branches = [allOf, anyOf, oneOf].flatMap((list) => (isList(list) ? list : []))
  return [target, ...branches].filter(isSchema)
}

/** `schemas`, and all schemas that these refer to and choose between for the same value, at any depth. */
export function withAlternatives(root: JsonSchema, schemas: readonly JsonSchema[]): ReadonlySet<JsonSchema> {
  const found = new Set(schemas)
  // Schemas that are added during the iteration are visited too.
  for (const schema of found) for (const each of alternativesOf(root, schema)) found.add(each)
  return found
}

/** The schemas that `schemas` have for a member of an object, by its name, or for an item of a list, by its index. */
export function memberSchemas(schemas: Iterable<JsonSchema>, step: string | number): JsonSchema[] {
  const find = (schema: JsonSchema): JsonValue | undefined =>
    typeof step === 'string' ? propertyAt(schema, step) : itemAt(schema, step)
  return Array.from(schemas, find).filter(isSchema)
}

function propertyAt({ properties, additionalProperties }: JsonSchema, name: string): JsonValue | undefined {
  return isSchema(properties) && Object.hasOwn(properties, name) ? properties[name] : additionalProperties
}

function itemAt({ items, prefixItems, additionalItems }: JsonSchema, index: number): JsonValue | undefined {
  const inPlace = isList(prefixItems) ? prefixItems : isList(items) ? items : []
  return inPlace[index] ?? (isList(items) ? additionalItems : items)
}

/** A copy of `schema` without some of its keywords. */
export function withoutKeywords(schema: JsonSchema, keywords: readonly string[]): JsonSchema {
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => !keywords.includes(keyword)))
}

/** True if a JSON value is a schema that is an object. */
export function isSchema(value: JsonValue | undefined): value is JsonSchema {
  return isObject(value)
}

/** `Array.isArray` for JSON values: the standard one does not see a readonly array in a union. */
export function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value)
}

function valueAtPointer(root: JsonSchema, pointer: string): JsonValue | undefined {
  let value: JsonValue | undefined = root
  for (const step of pointerSteps(pointer)) {
    if (isList(value)) value = value[Number(step)]
    else if (isSchema(value) && Object.hasOwn(value, step)) value = value[step]
    else return undefined
  }
  return value
}

function decodeStep(step: string): string {
  let text = step
  try {
    text = decodeURIComponent(step)
  } catch {
    // Not percent-encoded: a `%` is literal.
  }
  return text.replaceAll('~1', '/').replaceAll('~0', '~')
}

const MAPS = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'])
const LISTS = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems', 'items'])
const SINGLE = new Set([
  'items',
  'additionalItems',
  'unevaluatedItems',
  'contains',
  'additionalProperties',
  'unevaluatedProperties',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
  'contentSchema',
])
