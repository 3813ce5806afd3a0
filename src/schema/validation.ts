import type { JsonObject } from '#util/json.js'

/** Checks arguments that fit a JSON Schema, and returns the parsed value. */
export type Validate = (args: JsonObject) => Validation | Promise<Validation>

/** The parsed arguments, or their problems. */
export type Validation =
  { readonly ok: true; readonly value: JsonObject } | { readonly ok: false; readonly issues: readonly ArgumentIssue[] }

/** One thing wrong with the arguments of a call. */
export interface ArgumentIssue {
  /** From the root: keys and array indices; empty for the root itself. */
  readonly path: readonly (string | number)[]
  /** The sentence of the validator. */
  readonly message: string
  /** A short class: the validator's own, such as `type`, `required` or `invalid_type`; `invalid` if it has none. */
  readonly type: string
}
