import { boolean, dollars, either, integer, list, nullable, oneOf, optional, partial, string } from '#util/validate.js'
import type { Complete, Fields, PartialFields } from '#util/validate.js'
import { LONGEST_TIMER_MS } from '#util/timeout.js'

/** The limits of a run, and what happens when one is reached. */
export interface BudgetOptions {
  readonly limits?: Limits | undefined
  /**
   * The effect of a limit that is reached: it ends the run (`fail`, the default), or the model is asked once for an answer
   * without tools (`answer`).
   */
  readonly onLimit?: 'fail' | 'answer' | undefined
  /**
   * Holds up a run that goes in circles: calls like earlier ones, with the same results. `true`: the model is warned after 3
   * such turns in a row, asked to answer without tools after 5, and the run ends after 8. Default false.
   */
  readonly stall?: boolean | StallOptions | undefined
}

/** Budgets of a run; `null` or absent is no limit. */
export interface Limits {
  /** Requests to the model. Default 64. */
  readonly modelRequests?: number | null | undefined
  /** Calls of tools. A batch that would exceed it is not run. */
  readonly toolCalls?: number | null | undefined
  /** Sum over all requests; checked before each. */
  readonly inputTokens?: number | null | undefined
  readonly outputTokens?: number | null | undefined
  /** Wall clock, in ms. */
  readonly timeMs?: number | null | undefined
  /**
   * US dollars, for the run and the runs that it starts. The most that a request may cost is held before it, so that the
   * limit is never exceeded; a reply is capped at the rest. A model without a known price is refused (see `prices`).
   */
  readonly costUsd?: number | null | undefined
}

/** Limits of a run with their defaults; `null` is no limit. */
export type RunLimits = Complete<Limits>

/** Numbers of turns in a row that brought nothing new; `null` leaves a step out. */
export interface StallOptions {
  /** Then the model receives a notice. Default 3. */
  readonly noticeAfter?: number | null | undefined
  /** Then it is asked to answer without tools. Default 5. */
  readonly answerAfter?: number | null | undefined
  /** Then the run ends with `limit_reached`. Default 8. */
  readonly stopAfter?: number | null | undefined
  /** Tools whose calls always count as new, such as one that waits. Default: none. */
  readonly ignore?: readonly string[] | undefined
}

/** The options of loop detection with their defaults. */
export type StallRules = Complete<StallOptions>

const count = nullable(integer(0))
const step = nullable(integer(1))

export const BUDGETS: PartialFields<BudgetOptions> = {
  limits: partial({
    modelRequests: count,
    toolCalls: count,
    inputTokens: count,
    outputTokens: count,
    timeMs: nullable(integer(0, LONGEST_TIMER_MS)),
    costUsd: nullable(dollars),
  }),
  onLimit: oneOf('fail', 'answer'),
  stall: either(
    boolean,
    partial<StallOptions>({
      noticeAfter: step,
      answerAfter: step,
      stopAfter: step,
      ignore: list(string, 'a list of names'),
    }),
  ),
}

/** The same as fields among others. */
export const OPTIONAL_BUDGETS: Fields<BudgetOptions> = {
  limits: optional(BUDGETS.limits),
  onLimit: optional(BUDGETS.onLimit),
  stall: optional(BUDGETS.stall),
}
