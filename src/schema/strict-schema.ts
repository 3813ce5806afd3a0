import { isList, isSchema } from './subschemas.js'
import { isObject } from '#util/json.js'
import type { JsonSchema, JsonValue } from '#util/json.js'
import { bothSchemas } from './answer-schema.js'

/**
 * A schema in the form that constrained decoding accepts (the rules of OpenAI's strict mode, the narrowest): each object
 * closed, all its properties required, optional ones nullable instead; constraints that are not enforced are in the
 * description. It accepts everything that `document` accepts except for those nulls, and sometimes more; an answer is
 * checked by its own schema in any case. Null for schemas without such a form: maps, values of any kind, contradictions.
 */
export function strictSchema(document: JsonSchema): JsonSchema | null {
  const { $defs, ...root } = document
  const schema = strictForm(root)
  const definitions = strictMap(isSchema($defs) ? $defs : {})
  if (schema === null || definitions === null || !isWithinLimits([schema, ...Object.values(definitions)])) return null
  return Object.keys(definitions).length === 0 ? schema : { ...schema, $defs: definitions }
}

function strictForm(schema: JsonValue | undefined): JsonSchema | null {
  if (!isSchema(schema) || schema['allOf'] !== undefined) return null
  const { $ref, enum: options, const: constant, anyOf, oneOf } = schema
  // A reference must have no siblings.
  if (typeof $ref === 'string') return { $ref }
  if (isList(options) || constant !== undefined)
    return strictOptions(schema, isList(options) ? options : [constant ?? null])
  const branches = anyOf ?? oneOf
  if (isList(branches)) return strictUnion(schema, branches)
  const types = jsonTypes(schema)
  const [type, ...others] = types
  if (type === undefined) return null
  if (others.length === 0) return strictOfType(schema, type)
  if (types.some((each) => each === 'object' || each === 'array')) {
    return strictUnion(
      {},
      types.map((each) => ({ ...schema, type: each })),
    )
  }
  return strictScalar(schema, types)
}

function jsonTypes({ type, properties, items, prefixItems }: JsonSchema): readonly string[] {
  if (typeof type === 'string') return [type]
  if (isList(type)) return type.filter((each) => typeof each === 'string')
  if (properties !== undefined) return ['object']
  return items !== undefined || prefixItems !== undefined ? ['array'] : []
}

function strictOfType(schema: JsonSchema, type: string): JsonSchema | null {
  switch (type) {
    case 'object':
      return strictObject(schema)
    case 'array':
      return strictArray(schema)
    default:
      return strictScalar(schema, [type])
  }
}

function strictOptions(schema: JsonSchema, options: readonly JsonValue[]): JsonSchema | null {
  if (options.length === 0 || options.some((option) => typeof option === 'object' && option !== null)) return null
  const types = [...new Set(options.map(optionType))]
  return describedSchema(schema, { type: types.length === 1 ? (types[0] ?? 'string') : types, enum: options }, [])
}

function optionType(option: JsonValue): string {
  return option === null ? 'null' : typeof option
}

/** Siblings of the branches apply to each of them. */
function strictUnion(schema: JsonSchema, branches: readonly JsonValue[]): JsonSchema | null {
  const { anyOf, oneOf, description, ...siblings } = schema
  const isShared = Object.keys(siblings).some((keyword) => !ANNOTATIONS.has(keyword))
  const members = branches
    .filter((branch) => branch !== false)
    .map((branch) => strictForm(isShared && isSchema(branch) ? bothSchemas(siblings, branch) : branch))
  if (members.length === 0 || !members.every(isMade)) return null
  const [only] = members
  const union = members.length === 1 && only !== undefined && description === undefined ? only : { anyOf: members }
  return describedSchema({ description }, union, [])
}

const ANNOTATIONS = new Set(['default', 'examples', 'title', 'deprecated', 'readOnly', 'writeOnly', '$comment'])

function strictObject(schema: JsonSchema): JsonSchema | null {
  const { properties = {}, required, additionalProperties, patternProperties } = schema
  if (additionalProperties !== false || !isSchema(properties)) return null
  if (isObject(patternProperties) && Object.keys(patternProperties).length > 0) return null
  const demanded = isList(required) ? required : []
  const names = Object.keys(properties).filter((name) => properties[name] !== false)
  if (demanded.some((name) => typeof name !== 'string' || !names.includes(name))) return null
  const members: [string, JsonSchema][] = []
  for (const name of names) {
    const member = strictForm(properties[name])
    if (member === null) return null
    members.push([name, demanded.includes(name) ? member : nullableSchema(member)])
  }
  const object = {
    type: 'object',
    properties: Object.fromEntries(members),
    required: names,
    additionalProperties: false,
  }
  return describedSchema(schema, object, [
    'minProperties',
    'maxProperties',
    'propertyNames',
    'dependentRequired',
    'dependentSchemas',
    'not',
    'if',
    'then',
    'else',
  ])
}

/** A list whose items differ by their place becomes one whose items are any of these. */
function strictArray(schema: JsonSchema): JsonSchema | null {
  const { items, prefixItems, additionalItems, minItems, maxItems } = schema
  const inPlace = isList(prefixItems) ? prefixItems : isList(items) ? items : null
  const rest = isList(items) ? additionalItems : items
  const limits = { ...(isCount(minItems) && { minItems }), ...(isCount(maxItems) && { maxItems }) }
  const keywords = ['uniqueItems', 'contains', 'minContains', 'maxContains', 'not', 'if', 'then', 'else']
  if (inPlace === null) {
    const item = strictForm(items)
    return item && describedSchema(schema, { type: 'array', items: item, ...limits }, keywords)
  }
  const others = isSchema(rest) ? [rest] : []
  const item = strictUnion({}, distinctSchemas([...inPlace, ...others]))
  const most = others.length > 0 ? {} : { maxItems: inPlace.length }
  const array = item && { type: 'array', items: item, minItems: inPlace.length, ...most, ...limits }
  return array && describedSchema(schema, array, ['prefixItems', ...keywords])
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function distinctSchemas(schemas: readonly JsonValue[]): JsonValue[] {
  return [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()]
}

const SCALAR_KEYWORDS = ['minLength', 'maxLength', 'contentEncoding', 'contentMediaType', 'not', 'if', 'then', 'else']
const NUMBER_LIMITS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']
const FORMATS = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'])

function strictScalar(schema: JsonSchema, types: readonly string[]): JsonSchema {
  const { pattern, format } = schema
  const kept: Record<string, JsonValue> = {}
  const keywords = [...SCALAR_KEYWORDS]
  for (const limit of NUMBER_LIMITS) if (typeof schema[limit] === 'number') kept[limit] = schema[limit]
  if (typeof format === 'string' && FORMATS.has(format)) kept['format'] = format
  else keywords.push('format')
  // Groups with a question mark look ahead, or have names.
  if (typeof pattern === 'string' && !pattern.includes('(?')) kept['pattern'] = pattern
  else keywords.push('pattern')
  return describedSchema(schema, { type: types.length === 1 ? (types[0] ?? 'string') : types, ...kept }, keywords)
}

/** `strict` with the description of `schema`, and with its keywords that are not enforced in words. */
function describedSchema(
  { description, ...schema }: JsonSchema,
  made: JsonSchema,
  keywords: readonly string[],
): JsonSchema {
  const words = keywords.flatMap((keyword) =>
    schema[keyword] === undefined ? [] : [`${keyword}: ${JSON.stringify(schema[keyword])}`],
  )
  const text = [
    ...(typeof description === 'string' ? [description] : []),
    ...(words.length > 0 ? [`{${words.join(', ')}}`] : []),
  ].join('\n\n')
  return text === '' ? made : { ...made, description: text }
}

/** The same, or null for an absent property. */
function nullableSchema(schema: JsonSchema): JsonSchema {
  const { type, enum: options, anyOf } = schema
  if (isList(anyOf)) {
    return anyOf.some((branch) => isSchema(branch) && takesNull(branch['type']))
      ? schema
      : { ...schema, anyOf: [...anyOf, NULL] }
  }
  if (takesNull(type)) return schema
  if (schema['$ref'] !== undefined || type === 'object' || type === 'array') return { anyOf: [schema, NULL] }
  const types = isList(type) ? type : [type ?? 'string']
  return { ...schema, type: [...types, 'null'], ...(isList(options) && { enum: [...options, null] }) }
}

const NULL: JsonSchema = { type: 'null' }

function takesNull(type: JsonValue | undefined): boolean {
  return type === 'null' || (isList(type) && type.includes('null'))
}

function strictMap(definitions: JsonSchema): Record<string, JsonSchema> | null {
  const members: [string, JsonSchema][] = []
  for (const [name, definition] of Object.entries(definitions)) {
    const member = strictForm(definition)
    if (member === null) return null
    members.push([name, member])
  }
  return Object.fromEntries(members)
}

function isMade(schema: JsonSchema | null): schema is JsonSchema {
  return schema !== null
}

const MOST = { depth: 10, properties: 5_000, options: 1_000, characters: 120_000 }

function isWithinLimits(schemas: readonly JsonSchema[]): boolean {
  const total = { properties: 0, options: 0, characters: 0 }
  const isShallow = schemas.every((schema) => visit(schema, 0))
  return isShallow && (['properties', 'options', 'characters'] as const).every((name) => total[name] <= MOST[name])

  function visit({ properties, items, anyOf, enum: options }: JsonSchema, depth: number): boolean {
    if (depth > MOST.depth) return false
    const names = isSchema(properties) ? Object.keys(properties) : []
    const listed = isList(options) ? options : []
    total.properties += names.length
    total.options += listed.length
    total.characters += [...names, ...listed].reduce<number>(
      (sum, each) => sum + (typeof each === 'string' ? each.length : 1),
      0,
    )
    const deeper = properties !== undefined || items !== undefined ? depth + 1 : depth
    const inner = [...(isSchema(properties) ? Object.values(properties) : []), items, ...(isList(anyOf) ? anyOf : [])]
    return inner.every((each) => !isSchema(each) || visit(each, deeper))
  }
}
