import type { StructuredOutputMode, StructuredOutputRequest, ToolDefinition } from '../model/contracts.js'
import type { TranscriptEntry } from '../transcript/entry.js'
import type { JsonObject, JsonValue } from '../util/json.js'

/** Name of the synthetic tool by which a model gives a structured answer (spec §6.12). */
export const FINAL_RESULT = 'final_result'

/** How a run's final answer is asked for and read. */
export interface OutputFormat {
  readonly mode: StructuredOutputMode
  /** `final_result`, in mode `tool`. */
  readonly tool: ToolDefinition | null
  /** What the provider enforces, in mode `native`. */
  readonly request: StructuredOutputRequest | null
  /** Put behind the instructions, in mode `prompted`; else empty. */
  readonly instructions: string
  /** Reads an answer given as text. */
  parseText(text: string, context: OutputContext): Promise<ParsedOutput>
  /** Reads an answer given as arguments of `final_result`. */
  parseArguments(text: string, context: OutputContext): Promise<ParsedOutput>
  /** Follows an answer as it arrives; null where it is no JSON. */
  follow(): PartialAnswer | null
}

/** An answer that is still arriving. */
export interface PartialAnswer {
  /** What there is of the answer with the next piece of its text; `undefined` when that is nothing new. */
  push(text: string): JsonValue | undefined
}

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

export type ParsedOutput =
  | {
      readonly ok: true
      /** The answer as JSON, for the log. */
      readonly json: JsonValue
      /** The answer as the caller's schema parsed it. */
      readonly value: unknown
    }
  | { readonly ok: false; readonly problem: string }
