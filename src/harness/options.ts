import type { ContentPart } from '#contracts/entry.js'
import type { BudgetOptions } from '#contracts/limits.js'
import type { Model, ModelSettings, StructuredOutputMode } from '#core/model-session.js'
import type { Budget } from '#run/money/budget.js'
import type { Prices } from '#run/money/find-price.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { ConfigPolicy } from '#core/state/config-digest.js'
import type { AllowedPart } from '#core/loop/recording.js'
import type { ForkEffects } from '#run/replay/fork.js'
import type { Extension } from '#core/extension/extension.js'
import type { Hook } from '#core/extension/hooks.js'
import type { History } from '#run/resume/parse-history.js'
import type { InputPort } from '#core/stream/input.js'
import type { RunLog } from '#core/log/log.js'
import type { FlowOptions } from '#run/provenance/options.js'
import type { SigningKey } from '#core/loop/signature.js'
import type { Tracing } from '#core/extension/run-tracer.js'
import type { WrapModelCall, WrapToolCall } from '#core/extension/wraps.js'
import type { SkillsOptions } from '#toolbox/skills/options.js'
import type { InferOutput, OutputType, OutputValidator } from '#core/tools/output-type.js'
import type { SubagentSpec } from '#toolbox/agents/subagent-options.js'
import type { SandboxMode, ToolSource, ToolSpec } from '#core/tools/tool-spec.js'
import type { JsonObject } from '#util/json.js'

/** A prompt: a string, or parts, which can be images and files. */
export type Prompt = string | readonly ContentPart[]

/** Tools that a harness can be given by name. */
export type BuiltinToolName = (typeof BUILTIN_TOOL_NAMES)[number]

export const DEFAULT_TOOL_NAMES = ['read', 'write', 'edit', 'search', 'list', 'glob'] as const
export const BUILTIN_TOOL_NAMES = [...DEFAULT_TOOL_NAMES, 'jsonl_search', 'parallel_llm'] as const

/** Creates the dependencies of one run. */
export type DepsFactory<Deps> = (run: { readonly runId: string; readonly metadata: JsonObject }) => Deps

/** A harness whose tools need dependencies is created with them. */
export type DepsOption<Deps> = unknown extends Deps
  ? { readonly deps?: DepsFactory<Deps> | undefined }
  : { readonly deps: DepsFactory<Deps> }

/** The type of an answer: `Output` if that is named, or if the `outputType` is one of any form. */
export type AnswerOf<Type, Output> = [Type] extends [never]
  ? Output
  : OutputType<Output> extends Type
    ? Output
    : InferOutput<Type>

/** Options from whose `outputType` the type of the answer is inferred. */
export type TypedOptions<Type, Output, Deps> = HarnessOptions<NoInfer<AnswerOf<Type, Output>>, Deps> & {
  readonly outputType?: Type | OutputType<Output> | undefined
}

/** All optional. The constructor throws `invalid_options` for invalid ones. */
export interface HarnessOptions<Output = string, Deps = unknown> extends BudgetOptions, FlowOptions {
  /** Default: `$THINHARNESS_MODEL`. A run without either fails with `missing_model`. */
  readonly model?: ModelRef | Model | undefined
  /**
   * Workspace of the tools, such as the file tools, which a harness with a root has by default. Created when a file tool first
   * needs it. Default: the current folder, and no file tools.
   */
  readonly root?: string | undefined
  /**
   * The sandbox of `bash` and of skill scripts. `auto`: if this machine has one (Linux: bubblewrap, else namespaces); if it has
   * none, a warning says so. `required`: a command is refused without one. `off`: none. A tool's own `sandbox` comes first.
   * Default `auto`.
   */
  readonly sandbox?: SandboxMode | undefined
  /** The system prompt. Default: a short one for work on files when there are built-in tools, else none. */
  readonly instructions?: string | undefined
  /**
   * Built-in tools by name, loaded when first used. They work in `root`. Default: with a `root` the file tools `read`, `write`,
   * `edit`, `search`, `list` and `glob`, otherwise none.
   */
  readonly builtinTools?: readonly BuiltinToolName[] | undefined
  /** Your own tools, after the built-in ones. */
  readonly tools?: readonly ToolSpec<Deps>[] | undefined
  /**
   * Creates the dependencies of tools, hooks and policies, as `context.deps`, whenever a run begins or continues; child runs
   * have those of their parent. They are never logged. Default: none.
   */
  readonly deps?: DepsFactory<Deps> | undefined
  /** Servers whose tools are offered too, made by `mcpStdio` and the like of `thinharness/mcp`. Connected when first needed. */
  readonly mcpServers?: readonly ToolSource[] | undefined
  /** Skills in the Agent Skills format: listed to the model by name, read and run by it when it needs them. */
  readonly skills?: SkillsOptions | undefined
  /**
   * Agents that the model can hand tasks to, with the tool `subagent`; `[]` for the default agent alone. For more than
   * their list give `subagent({ … })` of `thinharness/tools` among the `tools`. Default: none.
   */
  readonly subagents?: readonly SubagentSpec[] | undefined
  /**
   * Schema of the final answer, or several schemas, one of which must match: `result.output` is the parsed answer.
   * Default: the answer is text.
   */
  readonly outputType?: OutputType<Output> | undefined
  /** How the answer is requested. Default `auto`: the best way that the model supports. */
  readonly outputMode?: StructuredOutputMode | 'auto' | undefined
  /** Checks an answer that fits its schema, or a text: throws `ModelRetry` to have it corrected. Default: none. */
  readonly outputValidator?: OutputValidator<Output> | undefined
  /** Corrective requests after an invalid answer. Default 1. */
  readonly outputRetries?: number | undefined
  /**
   * Prices of models, in addition to the known ones: `usage.costUsd` is the cost of a run, null if a price is unknown. `false`:
   * costs are not counted, unless `limits.costUsd` or `budget` needs them. Default: the known prices.
   */
  readonly prices?: Prices | false | undefined
  /** Money that all runs of the harness share, perhaps with runs of others. Default: none. */
  readonly budget?: Budget | undefined
  /**
   * Turns in a row in which the retryable failures of one tool are allowed: invalid arguments and `ModelRetry`. Several
   * failures of a tool in one turn count once. Default 3.
   */
  readonly toolRetries?: number | undefined
  /** `sequential`: every batch runs one call at a time. Default `auto`. */
  readonly toolExecution?: 'auto' | 'sequential' | undefined
  readonly hooks?: readonly Hook[] | undefined
  /**
   * Extensions, made by `defineExtension`, and tools: features as values. Their hooks and wraps come after the harness's own, in this
   * order. Each name is unique. `close()` of the harness closes them. Default: none.
   */
  readonly use?: readonly Extension<never>[] | undefined
  /** Middleware around every request to a model; the first is the outermost. Default: none. */
  readonly wrapModelCall?: readonly WrapModelCall[] | undefined
  /** Middleware around every call of a tool; the first is the outermost. Default: none. */
  readonly wrapToolCall?: readonly WrapToolCall[] | undefined
  /** The log of the runs. Default: memory. */
  readonly log?: RunLog | undefined
  /** Tracers of the runs, children included: `openTelemetry` and `localTraces` of `thinharness/tracing`. Default: none. */
  readonly tracing?: readonly Tracing[] | undefined
  readonly settings?: ModelSettings | undefined
  /**
   * Signs stored states (HMAC-SHA256) and rejects unsigned ones: for states that untrusted clients hold. At least 16 bytes.
   * Default: none.
   */
  readonly signingKey?: SigningKey | undefined
  /** The configuration with which its runs may continue, unless `resume` or `recover` says otherwise. Default `compatible`. */
  readonly configPolicy?: ConfigPolicy | undefined
}

/** Options of one run; each replaces that of the harness. Limits are merged over those of the harness. */
export interface RunOptions<Deps = unknown> extends BudgetOptions {
  /**
   * The conversation that the run continues: transcript entries, the `resumeState` of a run that has ended, or `{ runId,
   * after }`, a run of the same log, up to and including the step of the entry `after`. Default, and `null`: none.
   */
  readonly history?: History | null | undefined
  /** Default: `run_` and 32 hex digits. */
  readonly runId?: string | undefined
  /**
   * If the log has a run of this `runId`: `fail` rejects with `run_exists`; `continue` gives the result or error of a run that
   * has ended and the pause of one that waits, and recovers an interrupted one; `retry` is the same, but continues a run that
   * failed or was cancelled. The prompt and `history` are then those of the stored run. Without such a run, all begin it.
   * Default `fail`. The others need `runId`.
   */
  readonly ifExists?: 'fail' | 'continue' | 'retry' | undefined
  /** Money that the run shares with others, instead of the budget of the harness. */
  readonly budget?: Budget | undefined
  /** Extensions for this run alone, outside all others. `close` of these is not called. Default: none. */
  readonly use?: readonly Extension<never>[] | undefined
  /** Data of the host, passed to tools, hooks and the log; never to the model. */
  readonly metadata?: object | undefined
  /**
   * Short texts by which runs are found (`list({ labels })`), at most 16; shown to no model. A run that goes on keeps those it began
   * with. Default: none.
   */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /**
   * Cancels the run; if its reason is a `HarnessError` of code `interrupted`, leaves the run, as `close` does: it can be
   * recovered.
   */
  readonly signal?: AbortSignal | undefined
  /** The events include deltas of text, reasoning and arguments. Default: true for streams, else false. */
  readonly deltas?: boolean | undefined
  /** The stream includes the events of child runs, under their own `runId`. Default true. */
  readonly includeSubagents?: boolean | undefined
  readonly model?: ModelRef | Model | undefined
  readonly instructions?: string | undefined
  /**
   * Workspace of the tools in this run, and of its child runs. It adds no tools: the harness has those of its own `root` or
   * `builtinTools`. A run that continues elsewhere needs it again. Default: that of the harness.
   */
  readonly root?: string | undefined
  /** Added to the harness's tools, for this run. */
  readonly tools?: readonly ToolSpec<Deps>[] | undefined
  /** Servers whose tools this run has in addition to those of the harness. The caller closes them. Default: none. */
  readonly mcpServers?: readonly ToolSource[] | undefined
  /** Dependencies of this run, instead of those of the harness. */
  readonly deps?: Deps | undefined
  readonly log?: RunLog | undefined
  /** Steering messages, taken at turn boundaries. */
  readonly input?: InputPort | undefined
}

/** A run that is to wait. */
export interface QueueOptions extends Pick<RunOptions, 'runId' | 'metadata' | 'labels' | 'log'> {
  /** Name of the agent that is to run it, for whoever begins it. */
  readonly agent?: string | undefined
  /** Who queues it. */
  readonly by?: string | undefined
}

/** Options of a run that continues. */
export interface ResumeOptions<Deps = unknown> extends Omit<
  RunOptions<Deps>,
  'history' | 'runId' | 'ifExists' | 'labels'
> {
  /**
   * The configuration with which the run may continue: the same one (`same`); any in which the tools of open calls are
   * unchanged (`compatible`); any (`any`). Default: that of the harness.
   */
  readonly configPolicy?: ConfigPolicy | undefined
}

/** How a harness is closed. */
export interface CloseOptions {
  /**
   * How runs in progress end:
   * - `leave`: they stop and are not ended, so that `recover` continues them, also in another process. Their tool calls get
   *   `timeoutMs` to end; nothing else begins. Their results reject with `interrupted`.
   * - `cancel`: they end as `cancelled`.
   * - `finish`: they run to their end or their next pause.
   *
   * Default: `leave` for runs whose log outlives the process, `cancel` for others.
   */
  readonly runs?: 'leave' | 'cancel' | 'finish' | undefined
  /**
   * With `leave`: how long tool calls in progress may take, in ms, before their signal is aborted; default 10,000. With
   * `finish`: how long the runs may take; those that are still in progress are then treated as by default. Default: any time.
   */
  readonly timeoutMs?: number | undefined
}

/** Options that a recorded run was given itself, and that its replay needs. */
export interface ReplayOptions<Deps = unknown> extends Pick<
  RunOptions<Deps>,
  'tools' | 'mcpServers' | 'instructions' | 'root' | 'use'
> {
  /**
   * Parts of the requests that may differ from the recording: the instructions, or the definitions of the tools. Default: none.
   * The replies are the recorded ones, whatever the model would answer now.
   */
  readonly allow?: readonly AllowedPart[] | undefined
  /** Called with each difference that `allow` accepts, in plain words. An error that it throws ends the replay. */
  readonly onDifference?: ((difference: string) => void) | undefined
}

/** Options of a run that continues a recorded one. */
export interface ForkOptions<Deps = unknown> extends Omit<RunOptions<Deps>, 'history' | 'ifExists'>, ForkEffects {}
