import type { TranscriptEntry } from '#contracts/entry.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import type { Schema, StandardSchema } from '#schema/schema.js'

/** The schema of an answer, or several, one of which it must fit. */
export type OutputType<Output = unknown> = Schema<Output> | readonly Schema<Output>[]

/** The type of an answer of an `outputType`. */
export type InferOutput<Type> = Type extends readonly (infer One)[] ? InferOne<One> : InferOne<Type>

type InferOne<One> = One extends StandardSchema<infer T> ? T : JsonValue

/** The context of an answer, for validators. */
export interface OutputContext {
  readonly runId: string
  /** The metadata of the run. */
  readonly metadata: JsonObject
  /** The workspace, an absolute path. */
  readonly root: string
  /** Aborted when the run is cancelled. */
  readonly signal: AbortSignal
  /** The conversation before the answer. */
  readonly transcript: readonly TranscriptEntry[]
}

/**
 * Checks an answer that fits its schema. Throws a `ModelRetry` to have the model correct it; that counts as a corrective turn
 * (`outputRetries`). Any other error ends the run.
 */
export type OutputValidator<Output> = (output: Output, context: OutputContext) => void | Promise<void>

/** The same for one agent of a list, whose answers have types of their own: as a method, it is also one of `unknown`. */
export type AgentOutputValidator<Output> = {
  check(output: Output, context: OutputContext): void | Promise<void>
}['check']
