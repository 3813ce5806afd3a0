import type { BudgetOptions, Limits, RunLimits, StallOptions, StallRules } from '../contracts/limits.js'
import type { Given } from '../util/shape.js'
import type { OutputFormat } from '../output/format.js'
import type { RunRules } from '../run/machine/rules.js'
import type { ToolSpec } from '../tools/spec.js'

/** The limits of a run, and the effect of reaching one. */
export interface Budgets {
  readonly limits: RunLimits
  readonly onLimit: 'fail' | 'answer'
  readonly stall: StallRules | null
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
}

/** The budgets of parsed options, with defaults from `defaults`. */
export function budgetsOf({ limits, onLimit, stall }: BudgetOptions, defaults = DEFAULTS): Budgets {
  return {
    limits: { ...defaults.limits, ...(limits as Given<Limits> | undefined) },
    onLimit: onLimit ?? defaults.onLimit,
    stall: stall === undefined ? defaults.stall : stallRules(stall),
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

/** The rules of a run that has these tools. */
export function rulesOf(
  { outputRetries, toolRetries }: Pick<RunRules, 'outputRetries' | 'toolRetries'>,
  { limits, onLimit, stall }: Budgets,
  { tools, output }: { readonly tools: readonly ToolSpec[]; readonly output: OutputFormat | null },
): RunRules {
  const retryBudgets = tools.flatMap(({ name, maxRetries }) =>
    maxRetries === undefined ? [] : [[name, maxRetries] as const],
  )
  return {
    limits,
    outputRetries,
    toolRetries,
    toolRetryBudgets: Object.fromEntries(retryBudgets),
    answersByTool: output?.mode === 'tool',
    ...((output?.mode === 'native' || output?.mode === 'prompted') && { answersByJson: true as const }),
    ...(onLimit === 'answer' && { onLimit }),
    ...(stall !== null && { stall }),
  }
}
