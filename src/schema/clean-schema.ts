import { isSchema, mapSubschemas, resolveReference, schemasIn, withoutKeywords } from './subschemas.js'
import type { JsonSchema, JsonValue } from '#util/json.js'

/**
 * A schema that a library emitted, for a model: references are inlined, except recursive ones, whose targets stay under
 * `$defs`; titles, `$schema` and discriminator hints are removed; an object at the root is closed unless it states
 * otherwise. Throws a `RangeError` for a reference without a target.
 */
export function cleanSchema(emitted: JsonSchema): JsonSchema {
  return closedAtRoot(inlinedSchema(emitted))
}

/** The same without closing objects: for a document that states this itself. */
export function inlinedSchema(document: JsonSchema): JsonSchema {
  const kept = recursiveReferences(document)
  return new Inliner(document, kept).result() ?? new Inliner(document, null).result(Infinity) ?? document
}

/** A larger result than this keeps all its references: inlining can grow a schema without bound. */
const MOST_INLINED_SCHEMAS = 5_000

class Inliner {
  readonly #root: JsonSchema
  /** References to keep; `null` for all of them. */
  readonly #kept: ReadonlySet<string> | null
  readonly #names = new Map<string, string>()
  readonly #definitions = new Map<string, JsonSchema>()
  #count = 0
  #most = MOST_INLINED_SCHEMAS

  constructor(root: JsonSchema, kept: ReadonlySet<string> | null) {
    this.#root = root
    this.#kept = kept
  }

  /** `undefined` when it grew too large. */
  result(most = MOST_INLINED_SCHEMAS): JsonSchema | undefined {
    this.#most = most
    // The root is always spelled out: providers want to see an object there.
    const top = this.#expand(dereferencedSchema(this.#root, this.#root))
    if (this.#count > this.#most) return undefined
    if (this.#definitions.size === 0) return top
    return { ...top, $defs: Object.fromEntries(this.#definitions) }
  }

  readonly #expand = (schema: JsonSchema): JsonSchema => {
    this.#count += 1
    if (this.#count > this.#most) return {}
    const { $ref, ...rest } = withoutNoise(schema)
    const members = mapSubschemas(rest, this.#expand)
    if (typeof $ref !== 'string') return members
    if (this.#kept?.has($ref) === false) return { ...this.#expand(referenceTarget(this.#root, $ref)), ...members }
    return { $ref: `#/$defs/${this.#define($ref)}`, ...members }
  }

  #define(reference: string): string {
    const known = this.#names.get(reference)
    if (known !== undefined) return known
    const name = freeName(reference, new Set(this.#names.values()))
    this.#names.set(reference, name)
    // The place in the order is taken first, because the definition may refer to itself.
    this.#definitions.set(name, {})
    this.#definitions.set(name, this.#expand(referenceTarget(this.#root, reference)))
    return name
  }
}

/** The references from which the same reference can be reached again. */
function recursiveReferences(root: JsonSchema): Set<string> {
  const next = new Map<string, ReadonlySet<string>>()
  const visit = (schema: JsonSchema): Set<string> => {
    const found = schemaReferences(schema)
    for (const reference of found) {
      if (next.has(reference)) continue
      next.set(reference, new Set())
      next.set(reference, visit(referenceTarget(root, reference)))
    }
    return found
  }
  visit(root)
  return new Set([...next.keys()].filter((reference) => reachableReferences(next, reference).has(reference)))
}

function reachableReferences(next: ReadonlyMap<string, ReadonlySet<string>>, from: string): Set<string> {
  const found = new Set<string>()
  const open = [from]
  for (let reference = open.pop(); reference !== undefined; reference = open.pop()) {
    for (const step of next.get(reference) ?? []) {
      if (found.has(step)) continue
      found.add(step)
      open.push(step)
    }
  }
  return found
}

function schemaReferences(schema: JsonSchema): Set<string> {
  const references = new Set<string>()
  for (const { $ref } of schemasIn(withoutDefinitions(schema))) if (typeof $ref === 'string') references.add($ref)
  return references
}

function referenceTarget(root: JsonSchema, reference: string): JsonSchema {
  const found = resolveReference(root, reference)
  if (found === undefined) throw new RangeError(`The reference \`${reference}\` leads nowhere.`)
  return found
}

function dereferencedSchema(root: JsonSchema, schema: JsonSchema): JsonSchema {
  const { $ref, ...rest } = schema
  if (typeof $ref !== 'string' || $ref === '#') return rest
  return { ...referenceTarget(root, $ref), ...withoutDefinitions(rest) }
}

function freeName(reference: string, taken: ReadonlySet<string>): string {
  const base = (reference.split('/').at(-1) ?? '').replace(/[^A-Za-z0-9_-]/g, '') || 'root'
  let name = base
  for (let copy = 2; taken.has(name); copy++) name = `${base}_${copy}`
  return name
}

function withoutDefinitions(schema: JsonSchema): JsonSchema {
  return withoutKeywords(schema, ['$defs', 'definitions'])
}

/** A schema without what only its library reads, and without what says again at length what `type` and `format` say. */
function withoutNoise(schema: JsonSchema): JsonSchema {
  const noise = Object.keys(schema).filter((keyword) => isNoise(schema, keyword, schema[keyword]))
  return noise.length === 0 ? schema : withoutKeywords(schema, noise)
}

function isNoise(schema: JsonSchema, keyword: string, value: JsonValue | undefined): boolean {
  switch (keyword) {
    case '$schema':
    case '$id':
    case '$comment':
    case '$defs':
    case 'definitions':
    case 'title':
      return true
    case 'discriminator':
      return isSchema(value)
    case 'minimum':
      return value === Number.MIN_SAFE_INTEGER
    case 'maximum':
      return value === Number.MAX_SAFE_INTEGER
    case 'pattern':
      return typeof schema['format'] === 'string'
    default:
      return value === undefined
  }
}

function closedAtRoot(schema: JsonSchema): JsonSchema {
  const { type, properties, additionalProperties, anyOf, oneOf, allOf } = schema
  const isObjectSchema = type === 'object' || (type === undefined && properties !== undefined)
  if (!isObjectSchema) return schema
  // A closed object around a branch would forbid the properties of the branch.
  const hasBranches = [anyOf, oneOf, allOf].some((branches) => branches !== undefined)
  const open = additionalProperties !== undefined || hasBranches
  return { type: 'object', ...schema, ...(!open && { additionalProperties: false }) }
}
