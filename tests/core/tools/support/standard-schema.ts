import type { StandardSchema } from '#schema/schema.js'
import type { StandardResult } from '#schema/argument-issues.js'

/** A schema of a library that is not zod: only what the standard promises. */
export function libraryOf<T>(
  jsonSchema: Record<string, unknown>,
  validate: (value: unknown) => StandardResult<T> | Promise<StandardResult<T>>,
): StandardSchema<T> {
  return { '~standard': { version: 1, vendor: 'other', validate, jsonSchema: { input: () => jsonSchema } } }
}
