import { HarnessError } from '#contracts/errors.js'
import { schemaProblems } from './schema-check.js'
import { isStandardSchema, jsonSchemaOf, parseTyped } from './schema.js'
import type { ParsedArguments, Schema } from './schema.js'

/**
 * Parses a value with a schema; problems have the sentences of the validator. A typed schema parses (its defaults and transforms
 * apply); a JSON Schema document checks, and gives back the value itself.
 */
export async function parseWith<T>(schema: Schema<T>, value: unknown): Promise<ParsedArguments<T>> {
  const document = jsonSchemaOf(schema, 'a schema')
  if (isStandardSchema(schema)) return parseTyped<T>(schema, value)
  const problems = await schemaProblems(document, value)
  if (problems.kind === 'broken') throw new HarnessError('invalid_options', `Broken schema: ${problems.message}`)
  return problems.kind === 'valid' ? { ok: true, value: value as T } : { ok: false, issues: problems.issues }
}
