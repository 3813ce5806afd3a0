import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import type { ErrorObject, ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { isObject } from '#util/json.js'

/** The files of `tests/fixtures/request-schemas/` by API, and by `anthropic-version` for Anthropic. */
const FILES: Readonly<Record<string, string>> = {
  'openai-responses': 'openai-responses',
  'openai-responses-sdk': 'openai-responses-sdk-7.55.0',
  'openai-chat': 'openai-chat',
  'openai-chat-sdk': 'openai-chat-sdk-7.55.0',
  'openrouter-chat': 'openai-chat',
}
const FOLDER = new URL('../fixtures/request-schemas/', import.meta.url)
/** The fields that select a branch of a union. */
const TAGS = ['type', 'role']
const NEWEST_VERSION = '2026-10-21'
/** Messages that are listed of one request. */
const LONGEST = 8

export interface SchemaOptions {
  /** Top-level fields that a vendor accepts in addition to those of the schema. */
  readonly allow?: readonly string[]
  /** The `anthropic-version` whose schema is used. Default: the newest. */
  readonly version?: string
}

/** The problems of a request body under the schema of its API; empty if it is valid. */
export function requestProblems(api: string, body: unknown, options: SchemaOptions = {}): readonly string[] {
  const { allow = [], version = NEWEST_VERSION } = options
  const schema = requestSchema(api.startsWith('anthropic-') ? `${api}-${version}` : (FILES[api] ?? api))
  const problems = schema.check(body) ? [] : explain(schema, schema.check)
  const unknown = Object.keys(isObject(body) && api.startsWith('open') ? body : {}).filter(
    (name) => !schema.names.has(name) && !allow.includes(name),
  )
  return [...unknown.map((name) => `/ unknown top-level property (${name})`), ...problems]
}

type Schema = Readonly<Record<string, unknown>>

class RequestSchema {
  readonly #root: Schema
  readonly #ajv: Ajv | Ajv2020
  readonly check: ValidateFunction
  /** Properties of the root. */
  readonly names: ReadonlySet<string>

  constructor(root: Schema) {
    this.#root = root
    const options = { strict: false, allErrors: true, verbose: true, logger: false } as const
    this.#ajv = String(root['$schema']).includes('2020-12') ? new Ajv2020(options) : new Ajv(options)
    formats.default(this.#ajv)
    this.check = this.#ajv.compile(root)
    this.names = new Set(this.#namesOf(root))
  }

  /** A part of the schema, which may be a reference. */
  resolve(part: unknown): Schema {
    const schema = isObject(part) ? part : {}
    if (typeof schema['$ref'] !== 'string') return schema
    const steps = schema['$ref'].replace(/^#\//, '').split('/').map(decodeURIComponent)
    return this.resolve(steps.reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), this.#root))
  }

  /** The branches of a union, without unions among them. */
  branches(union: unknown): readonly unknown[] {
    return listOf(union).flatMap((branch) => {
      const { anyOf, oneOf } = this.resolve(branch)
      return anyOf !== undefined || oneOf !== undefined ? listOf(anyOf ?? oneOf) : [branch]
    })
  }

  /** The values that a branch of a union has for a tag. */
  tagValues(branch: unknown, tag: string): readonly unknown[] {
    const { properties } = this.resolve(branch)
    const values = this.resolve(isObject(properties) ? properties[tag] : undefined)
    return values['enum'] !== undefined ? listOf(values['enum']) : 'const' in values ? [values['const']] : []
  }

  /** Whether `data` is meant for this branch of a union: its kind and its tags agree. */
  fits(branch: unknown, data: unknown): boolean {
    const { type } = this.resolve(branch)
    const kind = data === null ? 'null' : Array.isArray(data) ? 'array' : typeof data
    if (type !== undefined && kind !== 'number' && ![type].flat().includes(kind)) return false
    if (!isObject(data)) return true
    return TAGS.every((tag) => {
      const values = this.tagValues(branch, tag)
      return values.length === 0 || data[tag] === undefined || values.includes(data[tag])
    })
  }

  compile(branch: unknown): ValidateFunction {
    const { $schema, $defs, definitions } = this.#root
    const shared = Object.entries({ $schema, $defs, definitions }).filter(([, value]) => value !== undefined)
    return this.#ajv.compile({ ...(branch as Schema), ...Object.fromEntries(shared) })
  }

  #namesOf(part: unknown): readonly string[] {
    const { properties, allOf } = this.resolve(part)
    return [...Object.keys(properties ?? {}), ...listOf(allOf).flatMap((each) => this.#namesOf(each))]
  }
}

const schemas = new Map<string, RequestSchema>()

function requestSchema(file: string): RequestSchema {
  const known = schemas.get(file)
  if (known !== undefined) return known
  const schema = new RequestSchema(JSON.parse(readFileSync(new URL(`${file}.json`, FOLDER), 'utf8')) as Schema)
  schemas.set(file, schema)
  return schema
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Why a value fails, with each union followed into the branch that the value's `type` or `role` names. */
function explain(schema: RequestSchema, { errors }: ValidateFunction, base = ''): string[] {
  const lines: string[] = []
  const covered: string[] = []
  const all = errors ?? []
  const unions = all.filter(({ keyword }) => keyword === 'anyOf' || keyword === 'oneOf')
  for (const union of unions.sort((a, b) => a.instancePath.length - b.instancePath.length)) {
    if (covered.some((path) => union.instancePath.startsWith(path))) continue
    covered.push(union.instancePath)
    lines.push(...explainUnion(schema, union, base + union.instancePath))
  }
  for (const error of all) {
    if (['anyOf', 'oneOf', 'allOf', 'if'].includes(error.keyword)) continue
    if (covered.some((path) => error.instancePath.startsWith(path))) continue
    lines.push(lineOf(error, base))
  }
  return [...new Set(lines)].slice(0, LONGEST)
}

/** The shortest explanation of the branches that the data is meant for. */
function explainUnion(schema: RequestSchema, union: ErrorObject, place: string): readonly string[] {
  const branches = schema.branches(union.schema)
  const meant = branches.filter((branch) => schema.fits(branch, union.data))
  if (meant.length === 0) {
    for (const tag of TAGS) {
      const known = new Set(branches.flatMap((branch) => schema.tagValues(branch, tag)))
      if (known.size > 0) return [`${place}/${tag} must be one of: ${[...known].join(' | ')}`]
    }
    return [`${place || '/'} fits no branch of the union`]
  }
  const explained = meant.flatMap((branch) => {
    const check = schema.compile(branch)
    return check(union.data) ? [] : [explain(schema, check, place)]
  })
  const [shortest] = explained.sort((a, b) => a.length - b.length)
  return shortest ?? [`${place || '/'} fits more than one branch of the union`]
}

function lineOf({ instancePath, message = '', params }: ErrorObject, base: string): string {
  const { additionalProperty, allowedValue, allowedValues } = params as Readonly<Record<string, unknown>>
  const detail = additionalProperty ?? allowedValue ?? (allowedValues && listOf(allowedValues).join(' | '))
  return `${base + instancePath || '/'} ${message}${detail === undefined ? '' : `: ${JSON.stringify(detail)}`}`
}
