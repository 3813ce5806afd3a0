import type { TranscriptEntry } from '../contracts/entry.js'
import type { JsonObject, JsonValue } from '../util/json.js'
import type { Schema, StandardSchema } from '../schema/schema.js'

/** What an answer may be: of one schema, or of one of several. */
export type OutputType<Output = unknown> = Schema<Output> | readonly Schema<Output>[]

/** The type of an answer of an `outputType`. */
export type InferOutput<Type> = Type extends readonly (infer One)[] ? InferOne<One> : InferOne<Type>

type InferOne<One> = One extends StandardSchema<infer T> ? T : JsonValue

/** Where an answer was given: what those who check it may look at. */
export interface OutputContext {
  readonly runId: string
  /** What the host gave the run. */
  readonly metadata: JsonObject
  /** The workspace, an absolute path. */
  readonly root: string
  /** Aborted when the run is cancelled. */
  readonly signal: AbortSignal
  /** The conversation before the answer. */
  readonly transcript: readonly TranscriptEntry[]
}

/**
 * Checks an answer that fits its schema. Throws a `ModelRetry` to have the model mend it, by its message; that counts as
 * a corrective turn (`outputRetries`). Anything else that it throws ends the run.
 */
export type OutputValidator<Output> = (output: Output, context: OutputContext) => void | Promise<void>

/** The same for one agent among others, whose answers are of types of their own: by its method it is one of `unknown` too. */
export type AgentOutputValidator<Output> = {
  check(output: Output, context: OutputContext): void | Promise<void>
}['check']
