import type { JsonSchema, JsonValue } from '#util/json.js'
import { alternativesOf, isList, isSchema, resolveReference } from './subschemas.js'

/** A place in a value, as described by its schema, for repairs and hints. */
export interface ValuePlace {
  /** JSON types that fit; `undefined` if any may. */
  readonly types: ReadonlySet<string> | undefined
  /** Fields that the schema names, of all alternatives together. */
  readonly names: readonly string[]
  /** The place of a field: a named one, or any other if the schema describes those. */
  field(name: string): ValuePlace | undefined
  has(name: string): boolean
  /** The place of every item of a list. */
  readonly items: ValuePlace | undefined
}

/** The places of a schema, made on first use. */
interface Places {
  readonly root: ValuePlace
}

/** Reads a schema as a map of places, once per schema. Alternatives, references and recursion are followed. */
export function openPlaces(schema: JsonSchema): Places {
  let places = opened.get(schema)
  if (places === undefined) opened.set(schema, (places = new SchemaPlaces(schema)))
  return places
}

const opened = new WeakMap<JsonSchema, Places>()

class SchemaPlaces implements Places {
  readonly #schema: JsonSchema
  /** By the numbers of the schemas that describe a place, so that a recursive schema has a finite number of places. */
  readonly #made = new Map<string, ValuePlace>()
  readonly #numbers = new Map<JsonSchema, number>()
  readonly #types = new Map<JsonSchema, ReadonlySet<string> | undefined>()
  readonly root: ValuePlace

  constructor(schema: JsonSchema) {
    this.#schema = schema
    this.root = this.of([schema])
  }

  /** The place that any of these schemas may describe. */
  of(schemas: readonly JsonSchema[]): ValuePlace {
    const key = schemas.map((schema) => this.#numberOf(schema)).join()
    let place = this.#made.get(key)
    if (place === undefined) this.#made.set(key, (place = new SchemaPlace(this, this.#schema, schemas)))
    return place
  }

  /** JSON types that fit a schema. Each schema is read once; one inside itself adds nothing. */
  typesOf(schema: JsonSchema): ReadonlySet<string> | undefined {
    if (this.#types.has(schema)) return this.#types.get(schema)
    this.#types.set(schema, undefined)
    const types = this.#readTypes(schema)
    this.#types.set(schema, types)
    return types
  }

  #readTypes({ type, $ref, anyOf, oneOf, allOf }: JsonSchema): ReadonlySet<string> | undefined {
    const inner = (each: JsonValue | undefined): ReadonlySet<string> | undefined =>
      isSchema(each) ? this.typesOf(each) : undefined
    if (typeof type === 'string') return new Set([type])
    if (isList(type)) return new Set(type.filter((each) => typeof each === 'string'))
    if (typeof $ref === 'string') return inner(resolveReference(this.#schema, $ref))
    const branches = isList(anyOf) ? anyOf : oneOf
    if (isList(branches)) return typeUnion(branches.map(inner))
    return isList(allOf) ? allOf.map(inner).find((types) => types !== undefined) : undefined
  }

  #numberOf(schema: JsonSchema): number {
    let number = this.#numbers.get(schema)
    if (number === undefined) this.#numbers.set(schema, (number = this.#numbers.size))
    return number
  }
}

class SchemaPlace implements ValuePlace {
  readonly types: ReadonlySet<string> | undefined
  readonly names: readonly string[]
  readonly #places: SchemaPlaces
  readonly #fields = new Map<string, JsonSchema[]>()
  readonly #others: JsonSchema[] = []
  readonly #itemSchemas: JsonSchema[] = []
  readonly #known = new Map<string, ValuePlace>()
  #items: ValuePlace | undefined

  constructor(places: SchemaPlaces, root: JsonSchema, schemas: readonly JsonSchema[]) {
    this.#places = places
    this.types = typeUnion(schemas.map((schema) => places.typesOf(schema)))
    for (const schema of new Set(schemas.flatMap((each) => [...schemaForms(root, each)]))) this.#read(schema)
    this.names = [...this.#fields.keys()]
  }

  field(name: string): ValuePlace | undefined {
    let place = this.#known.get(name)
    if (place !== undefined) return place
    const schemas = this.#fields.get(name)
    // Names that no schema lists are not remembered: a model can make up any number of them.
    if (schemas === undefined) return this.#others.length === 0 ? undefined : this.#places.of(this.#others)
    this.#known.set(name, (place = this.#places.of(schemas)))
    return place
  }

  has(name: string): boolean {
    return this.#fields.has(name)
  }

  get items(): ValuePlace | undefined {
    if (this.#itemSchemas.length > 0) this.#items ??= this.#places.of(this.#itemSchemas)
    return this.#items
  }

  #read({ properties, additionalProperties, patternProperties, items, prefixItems }: JsonSchema): void {
    for (const [name, schema] of Object.entries(isSchema(properties) ? properties : {})) {
      const known = this.#fields.get(name)
      const described = isSchema(schema) ? schema : {}
      if (known === undefined) this.#fields.set(name, [described])
      else known.push(described)
    }
    this.#others.push(
      ...schemaValues([additionalProperties, ...(isSchema(patternProperties) ? Object.values(patternProperties) : [])]),
    )
    for (const each of [items, prefixItems]) this.#itemSchemas.push(...schemaValues(isList(each) ? each : [each]))
  }
}

/** `schema` and the schemas that describe the same place: the target of its reference, its alternatives and parts. */
function* schemaForms(root: JsonSchema, schema: JsonSchema, seen = new Set<JsonSchema>()): Generator<JsonSchema> {
  if (seen.has(schema)) return
  seen.add(schema)
  yield schema
  const { if: condition, then, else: otherwise } = schema
  const all = [...alternativesOf(root, schema), ...schemaValues([condition, then, otherwise])]
  for (const each of all) yield* schemaForms(root, each, seen)
}

function typeUnion(all: readonly (ReadonlySet<string> | undefined)[]): ReadonlySet<string> | undefined {
  const types = new Set<string>()
  for (const each of all) {
    if (each === undefined) return undefined
    for (const type of each) types.add(type)
  }
  return types
}

function schemaValues(values: readonly (JsonValue | undefined)[]): JsonSchema[] {
  return values.filter(isSchema)
}
