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
  /**
   * US dollars, for the run and the runs that it starts. What a request may cost at most is held before it, so that the
   * limit is never passed; a reply is capped at what is left. A model without a known price is refused (see `prices`).
   */
  readonly costUsd?: number | null
}

/** After how many turns in a row that brought nothing new a run is held up; `null` leaves a step out. */
export interface StallOptions {
  /** The model is told. Default 3. */
  readonly noticeAfter?: number | null
  /** It is asked to answer without tools. Default 5. */
  readonly answerAfter?: number | null
  /** The run ends with `limit_reached`. Default 8. */
  readonly stopAfter?: number | null
  /** Tools whose calls always count as new, such as one that waits. Default: none. */
  readonly ignore?: readonly string[]
}
