import type { JsonSchema, JsonValue } from 'thinharness'

/** A tool schema as servers send it, with arguments that fit and arguments that do not. */
export interface Hostile {
  readonly name: string
  readonly schema: JsonSchema
  readonly fits: JsonValue
  /** Null if everything fits. */
  readonly misfits: JsonValue | null
  /** The place that the explanation of `misfits` names. */
  readonly at: string
}

export function hostile(
  name: string,
  schema: unknown,
  { fits, misfits = null, at = '' }: { readonly fits: JsonValue; readonly misfits?: JsonValue; readonly at?: string },
): Hostile {
  return { name, schema: schema as JsonSchema, fits, misfits, at }
}
