import type { BudgetOptions } from '#contracts/limits.js'
import type { Decide, HostedTool, Model, ModelSettings, StructuredOutputMode } from '../model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { HarnessResult } from '#contracts/result.js'
import type { ContentPart, ContentSource, TranscriptEntry } from '#contracts/entry.js'
import type { JsonInput, JsonObject, JsonSchema, JsonValue } from '#util/json.js'
import type { Ask } from './ask.js'
import type { AgentOutputValidator, InferOutput, OutputType } from './output-type.js'
import type { Schema } from '#schema/schema.js'
import type { ToolSourceHost } from './tool-source.js'
import type { Validate } from '#schema/argument-issues.js'

/** A tool: its description for the model, its options for the loop, and its code. Plain and immutable. */
export interface ToolSpec<in Deps = unknown> {
  /** Unique within a harness; letters, digits, `_` and `-`, at most 64. */
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments, an object schema; arguments are checked against it before `call`. */
  readonly parameters: JsonSchema
  readonly annotations?: ToolAnnotations | undefined
  /**
   * A barrier inside a batch: calls before it end first, and calls after it wait. `alone`: a call that is not the only one of its
   * reply is refused, and the model can call the tool again. Default false.
   */
  readonly sequential?: boolean | 'alone' | undefined
  /**
   * True if a person must agree to a call; as a function, decided from the parsed arguments. A policy may decide otherwise;
   * `always`: it can only deny. Default false.
   */
  readonly requiresApproval?:
    boolean | 'always' | ((args: JsonObject, context: ApprovalContext) => boolean | Promise<boolean>) | undefined
  /** For a call that had started when the process ended. Default: `retry` if read-only or idempotent, else `report`. */
  readonly onUnknownOutcome?: 'retry' | 'report' | 'pause' | undefined
  /**
   * Finds out if a call that had started when the process ended took effect. Comes before `onUnknownOutcome`, which applies
   * if this leaves it open.
   */
  readonly reconcile?: ((idempotencyKey: string, args: JsonObject) => Promise<Reconciliation>) | undefined
  /** Shown to a person who decides about the call, in addition to its arguments. */
  readonly preview?: ((args: JsonObject, context: ApprovalContext) => JsonValue | Promise<JsonValue>) | undefined
  /** Turns in a row in which the model may cause retryable failures. Default: the harness's `toolRetries`. */
  readonly maxRetries?: number | undefined
  /** Longest time of a call, in ms; then it is aborted, and the model is informed. Default: none. */
  readonly timeoutMs?: number | undefined
  /**
   * Longest text that the model gets of one result, in characters. Of a longer one it gets the start and the end. The whole
   * text is saved if the run has a tool that can read it, such as `read`; then a note with its place comes first, in addition
   * if the bound is below 600. Default 40,000.
   */
  readonly maxOutputChars?: number | undefined
  /** Added to the system prompt while the tool is offered. */
  readonly instructions?: string | undefined
  /** Other spellings of a field that models use: `{ file: 'path' }`. Applied only if the repaired call is valid. */
  readonly aliases?: Readonly<Record<string, string>> | undefined
  /** Fields, at any depth, that hold a path: `[label](target)` and `<target>` around a whole value are removed. */
  readonly pathFields?: readonly string[] | undefined
  /** The reach of its code, for `harness.describe()` and for the sources of results. Default: not stated. */
  readonly reach?: ToolReach | undefined
  /** How the programs that it starts are confined, for `harness.describe()`; `harness`: as its option says. Default: not stated. */
  readonly sandbox?: SandboxMode | 'harness' | undefined
  /**
   * Saves a result of any tool of the run that is longer than its `maxOutputChars`, so that this tool can read it. The first
   * tool of a run that has it is asked; if it rejects, the result is cut. The package's `read` has it. Default: none.
   */
  readonly saveOutput?: ((output: LongOutput) => Promise<SavedOutput>) | undefined
  /**
   * The call that a call of this tool stands for: from its admission on, hooks, policies, approvals, wraps, budgets and events know
   * the call as one of that tool, which runs in place of this one. Only the model's own entry keeps this tool's name. Must depend
   * on the arguments alone. Null, or an error: it stands for itself. Default: every call stands for itself.
   */
  readonly resolve?: ((args: JsonObject) => { name: string; arguments: JsonObject } | null) | undefined
  /**
   * The model is not given its definition: it finds the tool by those with `searchesTools`, and can call it like any other. Set by
   * `deferred` of `thinharness/tools`. A run without such tools lists it. Default false.
   */
  readonly deferred?: boolean | undefined
  /**
   * For the tools by which a model finds and calls deferred ones: true if the provider of the model searches these itself. Then it
   * gets their definitions, marked, in place of this tool. Default: it is no such tool.
   */
  readonly searchesTools?: ((deferred: readonly ToolSpec[], model: Pick<Model, 'capabilities'>) => boolean) | undefined
  /**
   * The provider makes sure that arguments fit the schema, if it can and the schema has a form for it; they are checked in any case.
   * Default false.
   */
  readonly strict?: boolean | undefined
  /** Arguments of typical calls, for the model: sent as such where a provider takes them, else in the description. Default: none. */
  readonly examples?: readonly JsonObject[] | undefined
  /**
   * The provider executes it, within its reply. Policies are asked once, when the tool is offered, with its options as the
   * arguments: unless they allow it, or have no opinion and nobody has to approve, it is left out. `call` answers a model that
   * calls it like other tools. Default: the harness executes it.
   */
  readonly hosted?: HostedTool | undefined
  /** Data of the host; the harness never reads it. */
  readonly metadata?: JsonObject | undefined
  /**
   * Checks arguments that the JSON Schema check let through, and gives the value that `call` gets: defaults filled in,
   * types parsed. Made by `defineTool` from a typed schema. Without it, `call` gets the JSON object itself.
   */
  readonly validate?: Validate | undefined
  /** Runs the tool. An error that it throws becomes a failed result and does not end the run. */
  readonly call: (args: JsonObject, context: ToolContext<Deps>) => Promise<ToolOutcome>
}

/** How one tool call ended, for the loop. Its envelope is recorded, and the model reads the content. */
export type ToolOutcome =
  | {
      readonly kind: 'succeeded'
      readonly content: string
      /** The value whose JSON is the content; absent if the text is the value. */
      readonly value?: JsonValue
      readonly metadata?: JsonObject
      /** Images and files for the model, in addition to the text. */
      readonly parts?: readonly ContentPart[]
    }
  | {
      readonly kind: 'failed'
      /** Short class of the failure, such as `NotFound`; in the envelope as `error_type`. */
      readonly errorType: string
      readonly content: string
      /** The model can mend it by calling again; counts against the tool's retry budget. */
      readonly retry: boolean
      readonly metadata?: JsonObject
      readonly parts?: readonly ContentPart[]
    }
  | { readonly kind: 'cancelled'; readonly reason: string; readonly metadata?: JsonObject }
  | { readonly kind: 'rejected'; readonly reason: string | null }

/** A result that is too long for the model. */
export interface LongOutput {
  readonly toolName: string
  readonly text: string
  /** The bound of the tool, in characters. */
  readonly maxChars: number
  /** The source of its content, which a saved copy keeps; null if the tool declares none. */
  readonly source: ContentSource['kind'] | null
  /** Absolute path of the harness's workspace. */
  readonly root: string
}

/** A long result that was saved. */
export interface SavedOutput {
  /** The text for the model: where the whole text is, how to read it, and its start and end. */
  readonly content: string
  /** Added to the metadata of the result. */
  readonly metadata: JsonObject
}

/** The effects of a tool, in MCP's terms. All hints default to unknown. */
export interface ToolAnnotations {
  /** Changes nothing. */
  readonly readOnly?: boolean | undefined
  /** May destroy something. */
  readonly destructive?: boolean | undefined
  /** Running it twice with the same arguments is as good as once. */
  readonly idempotent?: boolean | undefined
  /** Touches things outside the workspace. */
  readonly openWorld?: boolean | undefined
}

/** The reach of a tool's code, as its author declares it; it is not enforced. A kind that is left out: none. */
export interface ToolReach {
  /** Files and folders that it reads. Relative ones are in the workspace, `.` is the whole of it, `/` any file of the machine. */
  readonly reads?: readonly string[] | undefined
  /** Files and folders that it changes, in the same form. */
  readonly writes?: readonly string[] | undefined
  /** Hosts that it speaks to: `example.com`, `*.example.com`, `*` for any. */
  readonly hosts?: readonly string[] | undefined
  /** Programs that it starts; `*` for any. */
  readonly programs?: readonly string[] | undefined
  /** Secrets that it is given, by name: variables of an environment, headers of requests. */
  readonly secrets?: readonly string[] | undefined
}

/**
 * Whether the programs that a tool starts run in a sandbox: if this machine has one (`auto`), always (`required`: they are not
 * started without one), or never (`off`).
 */
export type SandboxMode = 'auto' | 'required' | 'off'

/** The outcome of a call that was interrupted: it happened, with this result; it did not, so it is run; or it is unknown. */
export type Reconciliation =
  { readonly outcome: 'happened'; readonly result: unknown } | { readonly outcome: 'did_not_happen' | 'unknown' }

/** The context of `requiresApproval` and `preview`. */
export interface ApprovalContext {
  readonly runId: string
  readonly callId: string
  readonly metadata: JsonObject
}

/** The context of a tool's handler. */
export interface ToolContext<out Deps = unknown> {
  readonly runId: string
  readonly callId: string
  readonly toolName: string
  /** Absolute path of the harness's workspace, for a tool that was given no root of its own. */
  readonly root: string
  /** The harness's `sandbox`, for a tool that was given none of its own. Default `auto`. */
  readonly sandbox?: SandboxMode | undefined
  /** How many runs this one is under: 0 at the top. */
  readonly depth: number
  /** The same for every attempt at this call, also after a crash: give it to the service that you call. */
  readonly idempotencyKey: string
  /**
   * The results that calls of these tools have had in the conversation, the newest first, from the log: they survive pauses,
   * crashes and further runs. Null if the run has none of the tools. Absent outside a run.
   */
  readonly results?: ((toolNames: readonly string[]) => Iterable<EarlierResult> | null) | undefined
  /** The tools of the run, by name. Absent outside a run. */
  readonly tools?: ReadonlyMap<string, ToolSpec> | undefined
  /** All entries of the conversation, in full: a view does not change them. Read-only. Absent outside a run. */
  readonly transcript?: readonly TranscriptEntry[] | undefined
  /** The run's metadata; read-only. */
  readonly metadata: JsonObject
  /** The host's own objects, such as a database: from the harness's `deps`, or from the call's. Never logged. */
  readonly deps: Deps
  /** Aborted when the run is cancelled or the tool's time is up. */
  readonly signal: AbortSignal
  /** How many requests to its model the run may still make, without those of this call; infinite if nothing limits them. */
  readonly requestsLeft?: (() => number) | undefined
  /** Reports the progress of the call, as plain JSON, to readers of the stream; never stored. */
  readonly progress: (update: JsonInput) => void
  /**
   * Asks a person. The first time, the handler exits: the run pauses, with `payload` among its pending items. After an
   * answer that fits the schema, the handler runs again from its beginning, and `ask` resolves with the parsed answer; work
   * before it must be safe to repeat. Several questions are distinguished by `key` (default: `1`, `2`, … in the order of
   * asking, which must then be the same each time). It rejects with an error that the handler must not catch.
   */
  readonly ask: Ask
  /**
   * Starts a child run of this call: its events, usage, abort and pending items are nested in this run's. After a crash or a
   * pause the same `spawn` finds it again and continues it. The handler runs again then: give its tool
   * `onUnknownOutcome: 'retry'`.
   */
  readonly spawn: Spawn<Deps>
  readonly decide: Decide
}

/** The result of an earlier call, as it is recorded. */
export interface EarlierResult {
  readonly toolName: string
  readonly callId: string
  /** The model had it when it made the call; false for calls of the same reply. */
  readonly isSeen: boolean
  readonly ok: boolean
  readonly content: string
  readonly metadata: JsonObject
}

/** A source of tools that are known only at run time, such as an MCP server. */
export interface ToolSource {
  /** Unique within a harness; named in warnings and errors. */
  readonly id: string
  /** True if a failure of the source fails the run. Otherwise a warning is emitted and its tools are omitted. */
  readonly required: boolean
  /**
   * Connects when needed; gives the tools on offer now. Meant to be called at every turn boundary: cheap, and the same
   * array, while nothing has changed. Rejects with a `HarnessError` when the source cannot be reached, or with the
   * reason of `signal`.
   */
  tools(host: ToolSourceHost, signal: AbortSignal): Promise<readonly ToolSpec[]>
  /**
   * Lets go of one host, and closes the source with the last of those that have asked for its tools; without `host`,
   * closes it at once. A source that is asked again afterwards opens again. Never rejects.
   */
  close(host?: ToolSourceHost): Promise<void>
}

/** Starts child runs, typed by their `outputType`. */
export interface Spawn<out Deps = unknown> {
  // Of two parameters, so that `spawn<Answer>(…)` means the one below.
  <const Type extends JsonSchema | readonly Schema[], Output extends InferOutput<Type>>(
    options: SpawnOptions<NoInfer<InferOutput<Type>>, Deps> & { readonly outputType: Type },
  ): ChildRun<Output>
  <Output = string>(options: SpawnOptions<Output, Deps>): ChildRun<Output>
}

/** The part of the parent's conversation that a child run begins with. */
export type ChildHistory = 'none' | 'inherit' | 'fork' | { readonly tokens: number }

/** The options of a child run. An absent option is none, not the parent's, unless it says so; absent budgets are those of the harness. */
export interface SpawnOptions<Output = string, in Deps = unknown> extends BudgetOptions {
  readonly prompt: string | readonly ContentPart[]
  /**
   * Distinguishes the children of one call: the child's run id consists of the parent's, the call's and this. Default: `1`,
   * `2`, … in the order of spawning, which must then be the same whenever the handler is entered.
   */
  readonly key?: string | undefined
  /**
   * The run is a program of this one, whose `model` is `computed`: its calls are calls of this run, for hooks, policies, approvals,
   * wraps and limits, and by default it has all tools. A failed call that it catches counts against no retry budget; an error that
   * leaves it is one failed call. Default: the run is a child of its own.
   */
  readonly as?: 'self' | undefined
  /** Name of the agent in events, hooks and traces. Default `default`. */
  readonly agentName?: string | undefined
  /** Default: the parent's. */
  readonly model?: ModelRef | Model | undefined
  /** System prompt. Default: none. */
  readonly instructions?: string | undefined
  /** `inherit`: the parent's. Default: none. */
  readonly tools?: readonly ToolSpec<Deps>[] | 'inherit' | undefined
  /** Names of inherited tools to leave out. Default: none. */
  readonly withoutTools?: readonly string[] | undefined
  /**
   * Servers whose tools the child has after those of `tools`. They are connected when the first child needs them, shared by
   * all children of the harness, and closed with it. The parent has them only if it lists them itself. Default: none.
   */
  readonly mcpServers?: readonly ToolSource[] | undefined
  /**
   * The part of the parent's conversation that it begins with, up to the reply that made this call, whose calls are answered with
   * a note. `inherit`: all of it, as the model sees it, with the options of this child. `fork`: all of it, and the instructions,
   * tools, settings, model and output type are the parent's too, so that the first request begins as the parent's last one did,
   * byte for byte, and is read from the provider's cache; other values are refused. `{ tokens }`: the entries that share most
   * words with `prompt` and the latest, within so many tokens by an estimate, quoted before `prompt`. Default `none`.
   */
  readonly history?: ChildHistory | undefined
  /**
   * The call does not wait for the run: it begins when the call has succeeded, and its outcome is reported to the model as a
   * message at a later turn. It belongs to the parent run, which does not end before it. As an object: it also waits for its
   * turn in that queue. After a crash or a pause the handler runs again, up to the same `spawn`, so its tool must have
   * `onUnknownOutcome: 'retry'`. Default false.
   */
  readonly background?: boolean | BackgroundLine | undefined
  /** Schema of the answer, or a list of schemas, one of which it must fit. Default: the answer is text. */
  readonly outputType?: OutputType<Output> | undefined
  readonly outputMode?: StructuredOutputMode | 'auto' | undefined
  /** Checks an answer that fits its schema, or text: throws `ModelRetry` to have it corrected. Default: none. */
  readonly outputValidator?: AgentOutputValidator<Output> | undefined
  /** Default: the parent's. */
  readonly outputRetries?: number | undefined
  /** Default: the parent's `toolRetries`. */
  readonly toolRetries?: number | undefined
  /** Default: the parent's. */
  readonly settings?: ModelSettings | undefined
  /** An object of plain JSON. Default: none. */
  readonly metadata?: object | undefined
  /** Aborts the child only; it also ends with the call's signal. */
  readonly signal?: AbortSignal | undefined
}

/** A queue for runs in the background, which start when there is room. */
export interface BackgroundLine {
  /** Does `work` once there is room under the run `parentRunId`. Rejects when `signal` is aborted before. */
  within<T>(parentRunId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>
}

/** A run that a tool call started. */
export interface ChildRun<Output = string> {
  readonly runId: string
  /**
   * Its result; rejects with its `HarnessError`. If it pauses, the call that started it pauses as well: then this rejects
   * with an error that must not be caught. For a run in the background it rejects at once: its call does not wait.
   */
  readonly result: Promise<HarnessResult<Output>>
}
