import type { OutputUnit } from '@cfworker/json-schema'
import { canonicalJson, isObject } from '#util/json.js'
import type { JsonSchema } from '#util/json.js'
import { isSafePattern, patternTest } from './safe-pattern.js'
import type { PatternTest } from './safe-pattern.js'
import { schemasIn } from './subschemas.js'

/** A check needs more steps than any check of a value of its size should. */
export class TooManySteps extends Error {
  override readonly name = 'TooManySteps'
}

/** Steps that each check may take. */
const STEPS = 400_000
/** Further steps for each value in the input. */
const STEPS_PER_VALUE = 20
/** Comparisons of items, and of keys with patterns or each other. */
const MOST_COMPARISONS = 20_000_000

/** The checks of texts by their names, in the validator. */
type Formats = Record<string, (text: string) => boolean>

type Check = (value: unknown, formats: Formats, validate: () => OutputUnit[]) => OutputUnit[]

/** What the schemas of one check share. It is synchronous: there is one at a time. */
class Meter {
  #value: unknown
  #left = 0
  #isExtended = false
  #hasEqualItems: boolean | undefined
  #keys: readonly string[] | undefined

  begin(value: unknown): void {
    this.#value = value
    this.#left = STEPS
    this.#isExtended = false
    this.#hasEqualItems = this.#keys = undefined
  }

  readonly spend = (steps: number): void => {
    this.#left -= steps
    if (this.#left >= 0) return
    if (!this.#isExtended) this.#left += valuesIn(this.#value).length * STEPS_PER_VALUE
    this.#isExtended = true
    if (this.#left < 0) throw new TooManySteps()
  }

  /** True if any list of the value has equal items: only then the validator, which compares each with each, is asked. */
  get hasEqualItems(): boolean {
    if (this.#hasEqualItems !== undefined) return this.#hasEqualItems
    const lists = valuesIn(this.#value).filter((each): each is unknown[] => Array.isArray(each))
    this.#hasEqualItems = lists.some((list) => new Set(list.map(canonicalJson)).size < list.length)
    const comparisons = lists.reduce((sum, { length }) => sum + length * length, 0)
    if (this.#hasEqualItems && comparisons > MOST_COMPARISONS) throw new TooManySteps()
    return this.#hasEqualItems
  }

  /** All keys of the value, each once. */
  get keys(): readonly string[] {
    this.#keys ??= [...new Set(valuesIn(this.#value).flatMap((each) => (isObject(each) ? Object.keys(each) : [])))]
    return this.#keys
  }
}

function valuesIn(value: unknown): readonly unknown[] {
  const found = [value]
  // Values that are added during the iteration are visited too.
  for (const each of found) {
    const members: readonly unknown[] = Array.isArray(each) ? each : isObject(each) ? Object.values(each) : []
    for (const member of members) found.push(member)
  }
  return found
}

/**
 * Bounds the checks by `schema`, which belongs to the validator: each schema counts when the validator reads it, patterns are tested in
 * bounded time, and items are compared only if there are equal ones.
 */
export async function boundedCheck(schema: JsonSchema): Promise<Check> {
  const meter = new Meter()
  const tests = new Map<string, PatternTest>()
  // All are found first: what is bounded is hidden from the search.
  for (const each of [...schemasIn(schema)]) await boundSchema(each, meter, tests)
  return (value, formats, validate) => {
    meter.begin(value)
    try {
      for (const [name, test] of tests) formats[name] = (text) => test(text, meter.spend)
      return validate()
    } finally {
      for (const name of tests.keys()) Reflect.deleteProperty(formats, name)
    }
  }
}

type Writable = Record<string, unknown>

async function boundSchema(schema: Writable, meter: Meter, tests: Map<string, PatternTest>): Promise<void> {
  const { type, pattern, patternProperties, uniqueItems } = schema
  const weight = weightOf(schema)
  onRead(schema, 'type', () => {
    meter.spend(weight)
    return type
  })
  if (uniqueItems === true) onRead(schema, 'uniqueItems', () => meter.hasEqualItems)
  if (typeof pattern === 'string') {
    const name = `${FORMAT}${pattern}`
    if (!tests.has(name)) tests.set(name, await patternTest(pattern))
    schema['format'] = name
    delete schema['pattern']
  }
  if (!isObject(patternProperties)) return
  const named = await Promise.all(
    Object.entries(patternProperties).map(async ([source, member]) => {
      return { source, member, test: isSafePattern(source) ? null : await patternTest(source) }
    }),
  )
  onRead(schema, 'patternProperties', () => {
    if (meter.keys.length * named.length > MOST_COMPARISONS) throw new TooManySteps()
    const own = named.map(({ source, member, test }, index) => [keyPattern(source, test, { meter, index }), member])
    return Object.fromEntries(own) as unknown
  })
}

/** Hidden from the validator's search for references, which has ended. */
function onRead(schema: Writable, keyword: string, get: () => unknown): void {
  Object.defineProperty(schema, keyword, { get, enumerable: false, configurable: true })
}

function weightOf({ properties, required, enum: options, const: constant }: Writable): number {
  const lists = [isObject(properties) ? Object.keys(properties) : [], Array.isArray(required) ? required : []]
  const values = options === undefined && constant === undefined ? 0 : JSON.stringify([options, constant]).length
  return 1 + lists.reduce((sum, { length }) => sum + length, 0) / 10 + values / 100
}

/** An expression for the keys that match: itself, or the list of them. `index` keeps two lists apart. */
function keyPattern(
  source: string,
  test: PatternTest | null,
  { meter, index }: { readonly meter: Meter; readonly index: number },
): string {
  if (test === null) return source
  const keys = meter.keys.filter((key) => test(key, meter.spend))
  if (keys.length * meter.keys.length > MOST_COMPARISONS) throw new TooManySteps()
  const literal = keys.map((key) => key.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'))
  return `${'(?:)'.repeat(index)}^(?:${literal.length === 0 ? '(?!)' : literal.join('|')})$`
}

/** Patterns are formats for the validator: it knows no other check of a text that can be given to it. */
const FORMAT = 'thinharness pattern '

/** An error in the words of `pattern`. */
export function asPattern(unit: OutputUnit): OutputUnit {
  if (unit.keyword !== 'format') return unit
  const keywordLocation = unit.keywordLocation.replace(/format$/, 'pattern')
  return { ...unit, keyword: 'pattern', keywordLocation, error: 'String does not match pattern.' }
}
