import { inlinedSchema } from '../schema/clean-schema.js'
import { isSchema, mapSubschemas } from '../schema/subschemas.js'
import { jsonSchemaOf, parseWith } from '../schema/schema.js'
import type { OutputType } from '../tools/output-type.js'
import type { Schema } from '../schema/schema.js'
import type { ArgumentIssue } from '../schema/validation.js'
import { HarnessError } from '../contracts/errors.js'
import type { JsonSchema } from '../util/json.js'

export type ParsedAnswer =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly issues: readonly ArgumentIssue[] }

/** The JSON Schema of an answer; of several types, that it is any of them. Throws `invalid_options` for an invalid type. */
export function outputSchemaOf(type: OutputType): JsonSchema {
  if (!isSeveral(type)) return jsonSchemaOf(type, '`outputType`')
  const known = joined.get(type)
  if (known !== undefined) return known
  if (type.length === 0) throw new HarnessError('invalid_options', 'Expected `outputType` to have at least one schema.')
  const schemas = type.map((each, index) =>
    withOwnDefinitions(inlinedSchema(jsonSchemaOf(each, `\`outputType[${index}]\``)), index),
  )
  const [first, ...others] = schemas
  const $defs = Object.assign({}, ...schemas.map((schema) => schema['$defs'] ?? {})) as JsonSchema
  const anyOf = schemas.map(({ $defs: _, ...schema }) => schema)
  const made =
    first !== undefined && others.length === 0 ? first : { anyOf, ...(Object.keys($defs).length > 0 && { $defs }) }
  joined.set(type, made)
  return made
}

const joined = new WeakMap<readonly Schema[], JsonSchema>()

/** Parses an answer with the first type that it fits; otherwise reports the problems of the type with the fewest. */
export async function parseAnswer(type: OutputType, json: unknown): Promise<ParsedAnswer> {
  if (!isSeveral(type)) return parseWith(type, json)
  let nearest: readonly ArgumentIssue[] = []
  for (const each of type) {
    const parsed = await parseWith(each, json)
    if (parsed.ok) return parsed
    if (nearest.length === 0 || weight(parsed.issues) < weight(nearest)) nearest = parsed.issues
  }
  return { ok: false, issues: nearest }
}

function isSeveral(type: OutputType): type is readonly Schema[] {
  return Array.isArray(type)
}

/** A problem at the root concerns the whole value. */
function weight(issues: readonly ArgumentIssue[]): number {
  return issues.reduce((sum, { path }) => sum + (path.length === 0 ? 100 : 1), 0)
}

/** Several schemas may have given one name to different definitions. */
function withOwnDefinitions(schema: JsonSchema, index: number): JsonSchema {
  const { $defs } = schema
  if (!isSchema($defs)) return schema
  const own = (name: string): string => `${name}_${index + 1}`
  const renamed = (each: JsonSchema): JsonSchema => {
    const { $ref, ...rest } = each
    const members = mapSubschemas(rest, renamed)
    return typeof $ref === 'string' ? { ...members, $ref: own($ref) } : members
  }
  const { $defs: definitions, ...rest } = renamed(schema)
  const entries = isSchema(definitions) ? Object.entries(definitions) : []
  return { ...rest, $defs: Object.fromEntries(entries.map(([name, each]) => [own(name), each])) }
}
