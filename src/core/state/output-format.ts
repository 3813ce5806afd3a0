import type { Model, StructuredOutputMode, StructuredOutputRequest, ToolDefinition } from '../model-session.js'
import type { OutputContext } from '../tools/output-type.js'
import type { JsonValue } from '#util/json.js'

/** Name of the synthetic tool with which a model returns a structured answer. */
export const FINAL_RESULT = 'final_result'

/** How a run's final answer is asked for and read. */
export interface OutputFormat {
  readonly mode: StructuredOutputMode
  /** `final_result`, in mode `tool`. */
  readonly tool: ToolDefinition | null
  /** The request that the provider enforces, in mode `native`. */
  readonly request: StructuredOutputRequest | null
  /** Appended to the instructions in mode `prompted`; otherwise empty. */
  readonly instructions: string
  /** Reads an answer given as text. */
  parseText(text: string, context: OutputContext): Promise<ParsedOutput>
  /** Reads an answer given as arguments of `final_result`. */
  parseArguments(text: string, context: OutputContext): Promise<ParsedOutput>
  /** Follows an answer as it arrives; null if it is not JSON. */
  follow(): PartialAnswer | null
}

/** An answer that is still arriving. */
export interface PartialAnswer {
  /** The answer so far, with the next piece of its text; `undefined` if the piece adds nothing. */
  push(text: string): JsonValue | undefined
}

export type ParsedOutput =
  | {
      readonly ok: true
      /** The answer as JSON, for the log. */
      readonly json: JsonValue
      /** The answer as the caller's schema parsed it. */
      readonly value: unknown
    }
  | { readonly ok: false; readonly problem: string }

/** How the answer of a run is asked for and read: a port, filled by `run/output`. */
export interface AnswerPort {
  /** Null if any text is an answer. */
  formatFor(model: Model): OutputFormat | null
  /** An answer that was kept as JSON, as the caller's schema parses it. */
  read(json: JsonValue): Promise<unknown>
}
