/** Budgets of a run; `null` or absent is no limit. */
export interface Limits {
  /** Requests to the model. Default 64. */
  readonly modelRequests?: number | null
  /** Calls of tools. A batch that would pass it is not run. */
  readonly toolCalls?: number | null
  /** Sum over all requests; checked before each. */
  readonly inputTokens?: number | null
  readonly outputTokens?: number | null
  /** Wall clock, in ms. */
  readonly timeMs?: number | null
}
