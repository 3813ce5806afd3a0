import type { JsonObject, JsonSchema, JsonValue } from '../util/json.js'
import type { ToolOutcome } from './outcome.js'

/** A tool: what the model is told of it, how the loop treats it, and what runs. Plain and immutable. */
export interface ToolSpec {
  /** Unique within a harness; letters, digits, `_` and `-`, at most 64. */
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments, an object schema; arguments are checked against it before `call`. */
  readonly parameters: JsonSchema
  readonly annotations?: ToolAnnotations
  /** A barrier inside a batch: what comes before it ends first, what comes after it waits. Default false. */
  readonly sequential?: boolean
  /** Whether a person must agree to a call; as a function, decided from the parsed arguments. Default false. */
  readonly requiresApproval?: boolean | ((args: JsonObject, context: ApprovalContext) => boolean | Promise<boolean>)
  /** What to do with a call that had started when the process ended. Default: `retry` if read-only or idempotent, else `report`. */
  readonly onUnknownOutcome?: 'retry' | 'report' | 'pause'
  /** Retryable failures in a row that the model may cause. Default: the harness's `toolRetries`. */
  readonly maxRetries?: number
  /** Longest time a call may take, in ms; then it is aborted and the model is told. Default: none. */
  readonly timeoutMs?: number
  /** Longest text that the model gets of one result, in characters; the middle of a longer one is left out. Default 200,000. */
  readonly maxOutputChars?: number
  /** Added to the system prompt while the tool is offered. */
  readonly instructions?: string
  /** Other spellings of a field that models use: `{ file: 'path' }`. Applied only where the repaired call is valid. */
  readonly aliases?: Readonly<Record<string, string>>
  /** Fields, at any depth, that hold a path: `[label](target)` and `<target>` around a whole value are removed. */
  readonly pathFields?: readonly string[]
  /** Data of the host; the harness never reads it. */
  readonly metadata?: JsonObject
  /**
   * Checks arguments that the JSON Schema check let through, and gives the value that `call` gets: defaults filled in,
   * types parsed. Made by `defineTool` from a typed schema. Without it, `call` gets the JSON object itself.
   */
  readonly validate?: (args: JsonObject) => Validation | Promise<Validation>
  /** Runs the tool. What it throws becomes a failed result, never the end of the run. */
  call(args: JsonObject, context: ToolContext): Promise<ToolOutcome>
}

/** What a tool does to the world, in MCP's words. All hints default to unknown. */
export interface ToolAnnotations {
  /** Changes nothing. */
  readonly readOnly?: boolean
  /** May destroy something. */
  readonly destructive?: boolean
  /** Running it twice with the same arguments is as good as once. */
  readonly idempotent?: boolean
  /** Touches things outside the workspace. */
  readonly openWorld?: boolean
}

/** Whether arguments fit, and what they became. */
export type Validation =
  { readonly ok: true; readonly value: JsonObject } | { readonly ok: false; readonly issues: readonly ArgumentIssue[] }

/** One thing wrong with the arguments of a call. */
export interface ArgumentIssue {
  /** From the root: keys and array indices; empty for the root itself. */
  readonly path: readonly (string | number)[]
  /** In plain words, without schema jargon. */
  readonly message: string
  /** Stable short class, such as `missing`, `type`, `unknown_field`. */
  readonly type: string
}

/** What a predicate of `requiresApproval` gets beside the arguments. */
export interface ApprovalContext {
  readonly runId: string
  readonly callId: string
  readonly metadata: JsonObject
}

/** What a tool's handler gets beside its arguments. */
export interface ToolContext {
  readonly runId: string
  readonly callId: string
  readonly toolName: string
  /** Absolute path of the harness's workspace, for a tool that was given no root of its own. */
  readonly root: string
  /** The same for every attempt at this call, also after a crash: give it to the service that you call. */
  readonly idempotencyKey: string
  /** The run's metadata; read-only. */
  readonly metadata: JsonObject
  /** Aborted when the run is cancelled or the tool's time is up. */
  readonly signal: AbortSignal
  /** Tells listeners of the stream how far the work is; never stored. */
  progress(update: JsonValue): void
}
