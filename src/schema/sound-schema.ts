import { isList, isSchema, mapSubschemas } from './subschemas.js'
import type { JsonSchema, JsonValue } from '#util/json.js'

/**
 * A schema whose keywords all have a value that JSON Schema allows for them: providers check that, and servers send
 * `type: 'any'`, `required: true`, `enum: []`, expressions of another language and more. A keyword that is not sound is
 * left out, which accepts more; a pattern is then part of the description. `leftOut` gets the name of each keyword whose
 * meaning is lost.
 */
export function soundSchema(schema: JsonSchema, leftOut: (keyword: string) => void): JsonSchema {
  const members = soundMembers(schema, SENT)
  const sound = mapSubschemas(members, (subschema) => soundSchema(subschema, leftOut))
  const { pattern, description } = schema
  const isDescribed = typeof pattern === 'string' && sound['pattern'] === undefined
  for (const [keyword, value] of Object.entries(schema)) {
    const isLost = value !== undefined && members[keyword] === undefined && !NEVER_SENT.has(keyword)
    if (isLost && !(isDescribed && keyword === 'pattern')) leftOut(keyword)
  }
  if (!isDescribed) return sound
  return { ...sound, description: `${typeof description === 'string' ? `${description} ` : ''}Pattern: ${pattern}` }
}

/** The sound keywords of `schema`, not of those inside it, for the check of arguments: in the words of any draft. */
export function checkedKeywords(schema: JsonSchema): JsonSchema {
  return soundMembers(schema, CHECKED)
}

function soundMembers(schema: JsonSchema, rules: Rules): JsonSchema {
  const members: [string, JsonValue][] = []
  for (const [keyword, value] of Object.entries(schema)) {
    const rule = rules.get(keyword)
    const sound = value === undefined || rule === undefined ? value : rule(value)
    if (sound !== undefined) members.push([keyword, sound])
  }
  return Object.fromEntries(members)
}

type Rule = (value: JsonValue) => JsonValue | undefined
type Rules = ReadonlyMap<string, Rule>

function onlyIf(test: (value: JsonValue) => boolean): Rule {
  return (value) => (test(value) ? value : undefined)
}

function distinctValues(values: readonly JsonValue[]): readonly JsonValue[] {
  const known = new Map(values.map((value) => [JSON.stringify(value), value]))
  return known.size === values.length ? values : [...known.values()]
}

const TYPES = new Set<JsonValue>(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'])

function soundType(value: JsonValue): JsonValue | undefined {
  if (!isList(value)) return TYPES.has(value) ? value : undefined
  const types = distinctValues(value.filter((each) => TYPES.has(each)))
  // An unknown type among known ones: anything may come.
  return types.length === 0 || value.some((each) => !TYPES.has(each)) ? undefined : types
}

function soundOptions(value: JsonValue): JsonValue | undefined {
  return isList(value) && value.length > 0 ? distinctValues(value) : undefined
}

function soundNames(value: JsonValue): JsonValue | undefined {
  return isList(value) ? distinctValues(value.filter((each) => typeof each === 'string')) : undefined
}

/** Some APIs take no `true` or `false` for a schema. */
function sentSubschema(value: JsonValue): JsonValue {
  if (value === false) return { not: {} }
  return isSchema(value) ? value : {}
}

function checkedSubschema(value: JsonValue): JsonValue {
  return isSchema(value) || value === false ? value : true
}

function soundMap(rule: Rule, isName: (name: string) => boolean = () => true): Rule {
  return (value) => {
    if (!isSchema(value)) return undefined
    const members = Object.entries(value).filter(([name]) => isName(name))
    return Object.fromEntries(members.map(([name, member]) => [name, rule(member ?? {})]))
  }
}

function soundBranches(subschema: Rule): Rule {
  return (value) => (isList(value) && value.length > 0 ? value.map((each) => subschema(each) ?? {}) : undefined)
}

function isRest(value: JsonValue): boolean {
  return typeof value === 'boolean' || isSchema(value)
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

/** Relative ones included. */
function isAddress(value: JsonValue): boolean {
  return typeof value === 'string' && URL.canParse(value, 'https://schemas.invalid')
}

const isString = (value: JsonValue): boolean => typeof value === 'string'
const isFlag = (value: JsonValue): boolean => typeof value === 'boolean'
const isNumber = (value: JsonValue): boolean => Number.isFinite(value)

const OF_IDENTITY = '$id id $anchor $dynamicAnchor $dynamicRef $recursiveRef'

/** Keywords by the rule for their values, in 2020-12. */
function keywordRules(subschema: Rule): [string, Rule][] {
  return [
    ...rulesFor('type', soundType),
    ...rulesFor('enum', soundOptions),
    ...rulesFor('required', soundNames),
    ...rulesFor('dependentRequired', soundMap(soundNames)),
    ...rulesFor('properties patternProperties $defs definitions dependentSchemas', soundMap(subschema)),
    ...rulesFor('anyOf oneOf allOf prefixItems', soundBranches(subschema)),
    ...rulesFor('items', onlyIf(isSchema)),
    ...rulesFor('additionalProperties unevaluatedProperties unevaluatedItems', onlyIf(isRest)),
    ...rulesFor('contains propertyNames not if then else contentSchema', subschema),
    ...rulesFor(
      'minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains',
      onlyIf(isCount),
    ),
    ...rulesFor('minimum maximum exclusiveMinimum exclusiveMaximum', onlyIf(isNumber)),
    ...rulesFor(
      'multipleOf',
      onlyIf((value) => isNumber(value) && Number(value) > 0),
    ),
    ...rulesFor('title description format $comment $ref', onlyIf(isString)),
    ...rulesFor('uniqueItems readOnly writeOnly deprecated', onlyIf(isFlag)),
    ...rulesFor('examples', onlyIf(isList)),
  ]
}

const NEVER_SENT = new Set(`${OF_IDENTITY} $recursiveAnchor $vocabulary nullable`.split(' '))

/** For providers. `nullable` is a word of OpenAPI; null is refused by the check. */
const SENT: Rules = new Map([
  ...keywordRules(sentSubschema),
  ...rulesFor('pattern', onlyIf(isPattern)),
  ...rulesFor('patternProperties', soundMap(sentSubschema, isPattern)),
  ...rulesFor([...NEVER_SENT].join(' '), () => undefined),
])

const CHECKED: Rules = new Map([
  ...keywordRules(checkedSubschema),
  ...rulesFor(
    'properties',
    soundMap(checkedSubschema, (name) => name.isWellFormed()),
  ),
  ...rulesFor('items', (value) => (isList(value) ? value.map(checkedSubschema) : onlyIf(isRest)(value))),
  ...rulesFor('additionalItems', onlyIf(isRest)),
  ...rulesFor(
    'dependencies',
    soundMap((value) => soundNames(value) ?? checkedSubschema(value)),
  ),
  ...rulesFor('exclusiveMinimum exclusiveMaximum', (value) => onlyIf(isFlag)(value) ?? onlyIf(isNumber)(value)),
  ...rulesFor(`$schema $ref ${OF_IDENTITY}`, onlyIf(isAddress)),
])

function rulesFor(keywords: string, rule: Rule): [string, Rule][] {
  return keywords.split(' ').map((keyword) => [keyword, rule])
}
