import type { HarnessError } from '../../contracts/errors.js'
import type { HarnessResult, RunUsage, StopReason } from '../../contracts/result.js'
import type { ContentPart } from '../../contracts/entry.js'
import type { Envelope } from '../../tools/boundary/envelope.js'
import type { ToolAnnotations } from '../../tools/spec.js'
import type { JsonObject } from '../../util/json.js'
import type { LimitKind } from '../machine/rules.js'

/** Input of each hook, in addition to `event`, `runId`, `deps` and `metadata`. Read-only data. */
export interface HookContexts {
  run_start: {
    readonly prompt: string | readonly ContentPart[]
    readonly root: string
    readonly maxModelRequests: number | null
    readonly maxToolCalls: number | null
  }
  user_prompt_submit: { readonly prompt: string | readonly ContentPart[] }
  before_tool_call: {
    readonly callId: string
    readonly toolName: string
    /** Raw JSON text. */
    readonly arguments: string
    readonly toolIndex: number
    /** Null for a tool that does not exist. */
    readonly tool: { readonly name: string; readonly description: string; readonly annotations: ToolAnnotations } | null
  }
  after_tool_call: {
    readonly callId: string
    readonly toolName: string
    readonly arguments: string
    readonly toolIndex: number
    /** The envelope's JSON text, before any hook. */
    readonly originalOutput: string
    /** The same, after the hooks before this one. */
    readonly output: string
    readonly envelope: Envelope
    readonly durationMs: number
  }
  before_subagent_run: ChildAbout
  after_subagent_run: ChildAbout & {
    readonly result: HarnessResult<unknown> | null
    readonly error: HarnessError | null
    readonly usage: RunUsage
  }
  limit_reached: { readonly limitKind: LimitKind; readonly limitValue: number; readonly currentCount: number }
  run_end: {
    readonly result: HarnessResult<unknown> | null
    readonly error: HarnessError | null
    readonly stopReason: StopReason
    readonly usage: RunUsage
  }
}

/** A run that a call of this one starts. */
interface ChildAbout {
  /** Name of the agent; `default` for one without a name. */
  readonly agent: string
  readonly prompt: string | readonly ContentPart[]
  readonly childRunId: string
  /** The call that starts it. */
  readonly callId: string
  /** Names of its tools. */
  readonly tools: readonly string[]
}

/** Answers of each hook; every hook may also return nothing. */
export interface HookAnswers {
  run_start: unknown
  /** `context` is appended to the prompt; `cancel` ends the run, with the given reason. */
  user_prompt_submit: { readonly context?: string | readonly string[]; readonly cancel?: string | true } | undefined
  /** `cancel` answers the call instead of the tool; `args` replace the model's arguments and are validated like them. */
  before_tool_call: { readonly cancel?: string | true; readonly args?: JsonObject } | undefined
  /** The result for the model; `output` wins over `envelope`. */
  after_tool_call: { readonly output?: string; readonly envelope?: Envelope } | undefined
  /** `cancel` prevents the run; for its call, the run has failed. */
  before_subagent_run: { readonly cancel?: string | true } | undefined
  after_subagent_run: unknown
  limit_reached: unknown
  run_end: unknown
}

export type HookEvent = keyof HookContexts
