import type { JsonSchema, JsonValue, Schema } from 'thinharness'

/** A schema of the kind that breaks requests somewhere, with values that fit it and values that do not. */
export interface Troublesome {
  readonly name: string
  readonly schema: Schema
  readonly fits: readonly JsonValue[]
  readonly misfits: readonly JsonValue[]
}

export const text: JsonSchema = { type: 'string' }
export const number: JsonSchema = { type: 'number' }

export function object(properties: JsonSchema, required: readonly string[] = [], rest: JsonSchema = {}): JsonSchema {
  return { type: 'object', properties, required, ...rest }
}

export function of(
  name: string,
  schema: Schema,
  fits: readonly JsonValue[],
  misfits: readonly JsonValue[],
): Troublesome {
  return { name, schema, fits, misfits }
}
