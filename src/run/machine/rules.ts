/** A budget that can run out. */
export type LimitKind =
  'model_requests' | 'tool_calls' | 'tool_retries' | 'input_tokens' | 'output_tokens' | 'time_ms' | 'cost_usd' | 'stall'

/** Limits of one run; `null` is no limit. */
export interface RunLimits {
  readonly modelRequests: number | null
  readonly toolCalls: number | null
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  readonly timeMs: number | null
  readonly costUsd: number | null
}

/** After how many turns in a row that brought nothing new a run is held up; `null` leaves the step out. */
export interface StallRules {
  /** The model is warned. */
  readonly noticeAfter: number | null
  /** It is asked to answer without tools. */
  readonly answerAfter: number | null
  /** The run ends. */
  readonly stopAfter: number | null
  /** Tools whose calls are new each time, such as one that waits. */
  readonly ignore: readonly string[]
}

/** The rules of a run, frozen when it starts. Plain JSON: they are in the log and in the state. */
export interface RunRules {
  readonly limits: RunLimits
  /** Corrective requests allowed after an output that does not fit. */
  readonly outputRetries: number
  /** Retryable failures in a row allowed to a tool that names no budget of its own. */
  readonly toolRetries: number
  /** Budgets of the tools that name one. */
  readonly toolRetryBudgets: Readonly<Record<string, number>>
  /** The final answer is asked for as a call of `final_result`. */
  readonly answersByTool: boolean
  /** A limit that is reached ends the run only when the model has been asked for an answer without tools. */
  readonly onLimit?: 'answer'
  /** Set if turns without anything new are counted. */
  readonly stall?: StallRules
}

export function retryBudget(rules: RunRules, toolName: string): number {
  return Object.hasOwn(rules.toolRetryBudgets, toolName) ? (rules.toolRetryBudgets[toolName] ?? 0) : rules.toolRetries
}
