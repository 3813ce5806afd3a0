import type { OutputUnit } from '@cfworker/json-schema'
import type { JsonSchema, JsonValue } from '../util/json.js'
import { inNumber, nearestAlternative, valueAt } from './findings.js'
import type { Finding, Path } from './findings.js'
import { isList, isSchema, pointerSteps, resolveReference } from './subschemas.js'

/** The validator's errors as findings: the wrong values themselves, not the values that contain them. */
export function schemaFindings(units: readonly OutputUnit[], checked: Checked): Finding[] {
  return findingsOf(units.slice(0, MOST_UNITS), checked)
}

/** The checked value and its schema. */
interface Checked {
  readonly value: unknown
  readonly schema: JsonSchema
}

/** Most errors that are reported. */
const MOST_UNITS = 2_000

function findingsOf(units: readonly OutputUnit[], checked: Checked): Finding[] {
  const findings: Finding[] = []
  for (let index = 0; index < units.length;) {
    const unit = units[index]
    if (unit === undefined) break
    const end = GROUPS.has(unit.keyword) ? endOfGroup(units, index) : index + 1
    if (GROUPS.has(unit.keyword)) findings.push(...groupFindings(unit, units.slice(index + 1, end), checked))
    else if (!holdsOthers(unit)) findings.push(leafFinding(unit, units[index - 1], checked))
    index = end
  }
  return findings
}

/** Keywords whose errors are reported as one. */
const GROUPS = new Set(['anyOf', 'oneOf', 'propertyNames', 'contains'])

/** An error is followed by those that it holds. */
function endOfGroup(units: readonly OutputUnit[], start: number): number {
  const prefix = `${units[start]?.keywordLocation ?? ''}/`
  let end = start + 1
  for (let unit = units[end]; unit !== undefined; unit = units[++end]) {
    // The place of a schema `false` is not reported; it always follows its parent.
    if (unit.keyword !== 'false' && !unit.keywordLocation.startsWith(prefix)) break
  }
  return end
}

function groupFindings(unit: OutputUnit, inner: readonly OutputUnit[], checked: Checked): readonly Finding[] {
  const path = pathOf(unit, checked)
  const other = (type: string, message: string, at = path): readonly Finding[] => [
    { path: at, kind: 'other', type, message },
  ]
  switch (unit.keyword) {
    case 'propertyNames':
      return other('field_name', 'a field of this name is not allowed', [...path, quoted(unit.error)])
    case 'contains':
      return other('items', 'holds no item of the kind that is needed')
    default:
      if (unit.keyword === 'oneOf' && !unit.error.includes('(0 matches)')) {
        return other('alternatives', 'has more than one of the allowed forms at once')
      }
      return nearestAlternative(
        path,
        branchesOf(unit, inner).map((branch) => findingsOf(branch, checked)),
      )
  }
}

function branchesOf({ keywordLocation }: OutputUnit, inner: readonly OutputUnit[]): OutputUnit[][] {
  const branches = new Map<string, OutputUnit[]>()
  let branch = ''
  for (const unit of inner) {
    if (unit.keyword !== 'false') branch = unit.keywordLocation.slice(keywordLocation.length + 1).split('/', 1)[0] ?? ''
    const units = branches.get(branch)
    if (units === undefined) branches.set(branch, [unit])
    else units.push(unit)
  }
  return [...branches.values()]
}

const HOLDERS = new Set([
  'properties',
  'patternProperties',
  'additionalProperties',
  'unevaluatedProperties',
  'items',
  'prefixItems',
  'additionalItems',
  'unevaluatedItems',
  'allOf',
  'if',
  'dependentSchemas',
  '$ref',
  '$recursiveRef',
])

function holdsOthers({ keyword, error }: OutputUnit): boolean {
  return HOLDERS.has(keyword) || (keyword === 'dependencies' && error.endsWith('schema.'))
}

function leafFinding(unit: OutputUnit, holder: OutputUnit | undefined, checked: Checked): Finding {
  const path = pathOf(unit, checked)
  const limit = keywordValue(checked.schema, unit.keywordLocation)
  switch (unit.keyword) {
    case 'type':
      return {
        path,
        kind: 'type',
        expected: isList(limit) ? limit.map(String) : [textOf(limit, 'value of another kind')],
      }
    case 'const':
      return { path, kind: 'option', options: [limit ?? null] }
    case 'enum':
      return { path, kind: 'option', options: isList(limit) ? limit : [] }
    case 'required':
      return { path: [...path, quoted(unit.error)], kind: 'missing' }
    case 'dependentRequired':
    case 'dependencies':
      return { path: [...path, quoted(unit.error.split('does not have').at(-1) ?? '')], kind: 'missing' }
    case 'false':
      return forbiddenFinding(path, holder)
    default:
      return { path, kind: 'other', type: unit.keyword, message: messageOf(unit.keyword, limit) }
  }
}

function forbiddenFinding(path: Path, holder: OutputUnit | undefined): Finding {
  switch (holder?.keyword ?? '') {
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return { path, kind: 'unknown_field' }
    case 'items':
    case 'additionalItems':
    case 'unevaluatedItems':
      return { path, kind: 'other', type: 'items', message: 'one item too many' }
    default:
      return { path, kind: 'other', type: 'forbidden', message: 'is not allowed here' }
  }
}

function messageOf(keyword: string, limit: JsonValue | undefined): string {
  const words = WORDS[keyword]
  if (words === undefined) return 'is not valid'
  return inNumber(words.replace('%', () => textOf(limit, 'a certain limit')))
}

function textOf(value: JsonValue | undefined, fallback: string): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : fallback
}

const WORDS: Readonly<Record<string, string>> = {
  minimum: 'must be at least %',
  maximum: 'must be at most %',
  exclusiveMinimum: 'must be more than %',
  exclusiveMaximum: 'must be less than %',
  multipleOf: 'must be a multiple of %',
  minLength: 'must have at least % characters',
  maxLength: 'must have at most % characters',
  pattern: 'must match the pattern %',
  minItems: 'must have at least % items',
  maxItems: 'must have at most % items',
  minContains: 'must have at least % items of the kind that is needed',
  maxContains: 'must have at most % items of this kind',
  uniqueItems: 'must not hold the same item twice',
  minProperties: 'must have at least % fields',
  maxProperties: 'must have at most % fields',
  not: 'has a form that is not allowed',
}

function pathOf({ instanceLocation }: OutputUnit, { value }: Checked): Path {
  let current = value
  return pointerSteps(instanceLocation).map((name) => {
    const step = Array.isArray(current) ? Number(name) : name
    current = valueAt(current, [step])
    return step
  })
}

/** The value at a place of the validator, which writes each followed reference as a step of its own. */
function keywordValue(schema: JsonSchema, location: string): JsonValue | undefined {
  let value: JsonValue | undefined = schema
  for (const step of pointerSteps(location)) {
    if (isList(value)) value = value[Number(step)]
    else if (!isSchema(value) || !Object.hasOwn(value, step)) return undefined
    else if (step === '$ref') value = referred(schema, value['$ref'])
    else value = value[step]
  }
  return value
}

function referred(schema: JsonSchema, reference: JsonValue | undefined): JsonSchema | undefined {
  return typeof reference === 'string' ? resolveReference(schema, reference) : undefined
}

/** The name in quotes that an error is about. */
function quoted(error: string): string {
  return error.slice(error.indexOf('"') + 1, error.lastIndexOf('"'))
}
