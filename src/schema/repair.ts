import { isList, isSchema, mapSubschemas, resolveReference } from './subschemas.js'
import type { JsonSchema, JsonValue } from '../util/json.js'

/**
 * A tool's schema without the parts for which providers reject the whole request: a list without `items` gets `items: {}`, and
 * a reference that leads nowhere is left out, so that anything is accepted there. `onDangling` receives each such reference.
 * Arguments are checked by the original schema.
 */
export function repairedSchema<T extends JsonSchema>(root: T, onDangling: (reference: string) => void): T {
  const repair = (schema: JsonSchema): JsonSchema => {
    const { $ref, ...rest } = mapSubschemas(schema, repair)
    const isDangling = typeof $ref === 'string' && resolveReference(root, $ref) === undefined
    if (isDangling) onDangling($ref)
    return {
      ...($ref !== undefined && !isDangling && { $ref }),
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

/**
 * A schema whose keywords all have a value that JSON Schema allows for them: providers check that, and servers send
 * `type: 'any'`, `required: true`, `enum: []`, expressions of another language and more. A keyword that is not sound is
 * left out, which accepts more; a pattern is then part of the description.
 */
export function soundSchema(schema: JsonSchema): JsonSchema {
  const members: [string, JsonValue][] = []
  for (const [keyword, value] of Object.entries(schema)) {
    const sound = value === undefined ? undefined : soundValue(keyword, value)
    if (sound !== undefined) members.push([keyword, sound])
  }
  const sound: JsonSchema = Object.fromEntries(members)
  const { pattern, description } = schema
  if (typeof pattern !== 'string' || sound['pattern'] !== undefined) return sound
  return { ...sound, description: `${typeof description === 'string' ? `${description} ` : ''}Pattern: ${pattern}` }
}

type Rule = (value: JsonValue) => JsonValue | undefined

function soundValue(keyword: string, value: JsonValue): JsonValue | undefined {
  const rule = RULES.get(keyword)
  return rule === undefined ? value : rule(value)
}

function only(test: (value: JsonValue) => boolean): Rule {
  return (value) => (test(value) ? value : undefined)
}

function distinct(values: readonly JsonValue[]): readonly JsonValue[] {
  const known = new Map(values.map((value) => [JSON.stringify(value), value]))
  return known.size === values.length ? values : [...known.values()]
}

const TYPES = new Set<JsonValue>(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'])

function soundType(value: JsonValue): JsonValue | undefined {
  if (!isList(value)) return TYPES.has(value) ? value : undefined
  const types = distinct(value.filter((each) => TYPES.has(each)))
  // An unknown type among known ones: anything may come.
  return types.length === 0 || value.some((each) => !TYPES.has(each)) ? undefined : types
}

function soundOptions(value: JsonValue): JsonValue | undefined {
  return isList(value) && value.length > 0 ? distinct(value) : undefined
}

function soundNames(value: JsonValue): JsonValue | undefined {
  return isList(value) ? distinct(value.filter((each) => typeof each === 'string')) : undefined
}

/** Some APIs take no `true` or `false` for a schema. */
function soundSubschema(value: JsonValue): JsonValue {
  if (value === false) return { not: {} }
  return isSchema(value) ? soundSchema(value) : {}
}

function soundMap(rule: Rule, isName: (name: string) => boolean = () => true): Rule {
  return (value) => {
    if (!isSchema(value)) return undefined
    const members = Object.entries(value).filter(([name]) => isName(name))
    return Object.fromEntries(members.map(([name, member]) => [name, rule(member ?? {})]))
  }
}

function soundBranches(value: JsonValue): JsonValue | undefined {
  return isList(value) && value.length > 0 ? value.map(soundSubschema) : undefined
}

function soundItems(value: JsonValue): JsonValue | undefined {
  return isSchema(value) ? soundSchema(value) : undefined
}

function soundRest(value: JsonValue): JsonValue | undefined {
  return typeof value === 'boolean' ? value : soundItems(value)
}

function isCount(value: JsonValue): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

/** A regular expression that means the same in JavaScript and in the languages of the APIs. */
function isPattern(value: JsonValue): boolean {
  if (typeof value !== 'string' || FOREIGN.test(value)) return false
  try {
    return new RegExp(value) instanceof RegExp
  } catch {
    return false
  }
}

/** Named groups, look-behind, Unicode classes, control escapes, and escapes of one language only. */
const FOREIGN = /\(\?<|\\[pPkcGzZAhHRXQE]|\\[ux]\{/

const isText = (value: JsonValue): boolean => typeof value === 'string'
const isFlag = (value: JsonValue): boolean => typeof value === 'boolean'
const isNumber = (value: JsonValue): boolean => Number.isFinite(value)

/** Keywords by the rule for their values. */
const RULES: ReadonlyMap<string, Rule> = new Map([
  ...rules('type', soundType),
  ...rules('enum', soundOptions),
  ...rules('required', soundNames),
  ...rules('dependentRequired', soundMap(soundNames)),
  ...rules('properties $defs definitions dependentSchemas', soundMap(soundSubschema)),
  ...rules('patternProperties', soundMap(soundSubschema, isPattern)),
  ...rules('anyOf oneOf allOf prefixItems', soundBranches),
  ...rules('items', soundItems),
  ...rules('additionalProperties unevaluatedProperties unevaluatedItems', soundRest),
  ...rules('contains propertyNames not if then else contentSchema', soundSubschema),
  ...rules('minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains', only(isCount)),
  ...rules('minimum maximum exclusiveMinimum exclusiveMaximum', only(isNumber)),
  ...rules(
    'multipleOf',
    only((value) => isNumber(value) && Number(value) > 0),
  ),
  ...rules('pattern', only(isPattern)),
  ...rules('title description format $comment $ref', only(isText)),
  ...rules('uniqueItems readOnly writeOnly deprecated', only(isFlag)),
  ...rules(
    'examples',
    only((value) => isList(value)),
  ),
  ...rules('$id id $anchor $dynamicAnchor $dynamicRef $recursiveAnchor $recursiveRef $vocabulary', () => undefined),
])

function rules(keywords: string, rule: Rule): [string, Rule][] {
  return keywords.split(' ').map((keyword) => [keyword, rule])
}
