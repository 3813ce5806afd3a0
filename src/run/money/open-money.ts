import type { Model } from '#core/model-session.js'
import { openSpending } from './open.js'
import { priceOf } from './prices.js'
import type { RunContext } from '#core/loop/run-context.js'
import { RunStopped } from '#core/loop/run-failure.js'
import type { RunMoney, RunPlan } from '#core/loop/run-plan.js'
import type { RunRules } from '#core/state/rules.js'
import type { RunState } from '#core/state/state.js'

/** The money of a new run, or of one that continues from `state`. */
export async function openMoney(
  { recording, outerPurse }: RunContext,
  { prices }: RunPlan,
  { model, rules, state }: { readonly model: Model; readonly rules: RunRules; readonly state: RunState | null },
): Promise<RunMoney> {
  const { costUsd: limitUsd } = rules.limits
  // The costs of recorded replies are in the recording.
  if (recording !== null) return { spending: null, price: null }
  if (limitUsd === null && outerPurse === null) {
    // A price that cannot be looked up is unknown.
    return { spending: null, price: prices === null ? null : priceOf(model, prices).catch(() => null) }
  }
  const spending = await openSpending({
    model,
    prices: prices ?? {},
    limitUsd,
    spentUsd: state?.usage.costUsd ?? 0,
    outer: outerPurse,
    stop: ({ limit, needed, isBudget }) =>
      new RunStopped({ kind: 'limit', breach: { kind: 'cost_usd', limit, count: needed }, isBudget }),
  })
  return { spending, price: null }
}
