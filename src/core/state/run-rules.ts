import type { RunLimits, StallRules } from '#contracts/limits.js'

/** A budget that can run out. */
export type LimitKind =
  | 'model_requests'
  | 'tool_calls'
  | 'tool_retries'
  | 'input_tokens'
  | 'output_tokens'
  | 'time_ms'
  | 'cost_usd'
  | 'stall'
  | 'script_steps'

/** The rules of a run, frozen when it starts. Plain JSON: they are in the log and in the state. */
export interface RunRules {
  readonly limits: RunLimits
  /** Corrective requests allowed after an output that does not fit. */
  readonly outputRetries: number
  /** Turns in a row with retryable failures that are allowed to a tool that names no budget of its own. */
  readonly toolRetries: number
  /** Budgets of the tools that name one. */
  readonly toolRetryBudgets: Readonly<Record<string, number>>
  /** The final answer is asked for as a call of `final_result`. */
  readonly answersByTool: boolean
  /** The text of the final answer is JSON, in the form of a schema: readers of the run show the answer, not the text. */
  readonly answersByJson?: true
  /** A limit that is reached ends the run only when the model has been asked for an answer without tools. */
  readonly onLimit?: 'answer'
  /** The model is a program: its turns are steps, not requests. */
  readonly computed?: true
  /** Of a program that a call has started: the calls that its run had made before, under the same limit. */
  readonly callsBefore?: number
  /** A fork whose tools have no effects; it has none either when it goes on. */
  readonly dry?: true
  /** Set if turns without anything new are counted. */
  readonly stall?: StallRules
}

/** The rules of a run that has not begun. */
export const NO_RULES: RunRules = {
  limits: { modelRequests: null, toolCalls: null, inputTokens: null, outputTokens: null, timeMs: null, costUsd: null },
  outputRetries: 0,
  toolRetries: 0,
  toolRetryBudgets: {},
  answersByTool: false,
}

export function retryBudget(rules: RunRules, toolName: string): number {
  return Object.hasOwn(rules.toolRetryBudgets, toolName) ? (rules.toolRetryBudgets[toolName] ?? 0) : rules.toolRetries
}
