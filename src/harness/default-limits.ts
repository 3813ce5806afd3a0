import type { BudgetOptions, Limits, RunLimits, StallOptions, StallRules } from '#contracts/limits.js'
import type { Given } from '#util/validate.js'
import type { PlannedRules } from '#core/loop/run-plan.js'
import type { RunState } from '#core/state/state.js'

/** The limits of a run and its retries, and the effect of reaching one. */
export interface Budgets {
  readonly limits: RunLimits
  readonly onLimit: 'fail' | 'answer'
  readonly stall: StallRules | null
  readonly outputRetries: number
  readonly toolRetries: number
}

const DEFAULTS: Budgets = {
  limits: {
    modelRequests: 64,
    toolCalls: null,
    inputTokens: null,
    outputTokens: null,
    timeMs: null,
    costUsd: null,
  },
  onLimit: 'fail',
  stall: null,
  outputRetries: 1,
  toolRetries: 3,
}

interface RetryOptions {
  readonly outputRetries?: number | undefined
  readonly toolRetries?: number | undefined
}

/** The budgets of parsed options, with defaults from `defaults`. */
export function budgetsOf(options: BudgetOptions & RetryOptions, defaults = DEFAULTS): Budgets {
  const { limits, onLimit, stall } = options
  return {
    limits: limits === undefined ? defaults.limits : { ...defaults.limits, ...(limits as Given<Limits>) },
    onLimit: onLimit ?? defaults.onLimit,
    stall: stall === undefined ? defaults.stall : stallRules(stall),
    outputRetries: options.outputRetries ?? defaults.outputRetries,
    toolRetries: options.toolRetries ?? defaults.toolRetries,
  }
}

/** Copies of the budgets among some options. */
export function copyOfBudgets({ limits, stall }: BudgetOptions): BudgetOptions {
  return {
    ...(limits !== undefined && { limits: { ...limits } }),
    ...(typeof stall === 'object' && { stall: { ...stall } }),
  }
}

/** Null if turns without news are not counted. */
function stallRules(stall: boolean | StallOptions): StallRules | null {
  if (stall === false) return null
  const steps = { noticeAfter: 3, answerAfter: 5, stopAfter: 8, ignore: [] }
  return stall === true ? steps : { ...steps, ...(stall as Given<StallOptions>) }
}

/** The rules of a run, by its options and those of the harness. */
export function plannedRules(options: BudgetOptions & RetryOptions, defaults: Budgets): PlannedRules {
  const { limits, onLimit, stall, outputRetries, toolRetries } = budgetsOf(options, defaults)
  return {
    limits,
    outputRetries,
    toolRetries,
    ...(onLimit === 'answer' && { onLimit }),
    ...(stall !== null && { stall }),
  }
}

/** The rules of a program: its calls are under the limits of the run above it. What stops that run stops the program too. */
export function programRules(
  options: BudgetOptions & RetryOptions,
  { rules: above, usage }: Pick<RunState, 'rules' | 'usage'>,
): PlannedRules {
  const { modelRequests: most, toolCalls } = above.limits
  // Its tools may ask how many requests are left to the run.
  const modelRequests = most === null ? null : Math.max(0, most - usage.modelRequests)
  const limits = { inputTokens: null, outputTokens: null, timeMs: null, costUsd: null, modelRequests, toolCalls }
  const { onLimit = 'fail' } = above
  return plannedRules({ onLimit, ...options, stall: false }, { ...above, limits, onLimit, stall: null })
}
