import type { Model } from '../../contracts/model.js'
import { openSpending as open } from '../../money/open.js'
import type { Spending } from '../../money/spending.js'
import type { RunContext } from '../core/context.js'
import { RunStopped } from '../core/failure.js'
import type { RunPlan } from '../core/plan.js'
import type { RunRules } from '../machine/rules.js'
import type { RunState } from '../machine/state.js'

/** The money of a new run, or of one that continues from `state`; null if costs are not counted. */
export async function openSpending(
  { recording, outerPurse }: RunContext,
  { prices }: RunPlan,
  { model, rules, state }: { readonly model: Model; readonly rules: RunRules; readonly state: RunState | null },
): Promise<Spending | null> {
  const { costUsd: limitUsd } = rules.limits
  // The costs of recorded replies are in the recording.
  if (recording !== null || (limitUsd === null && prices === null && outerPurse === null)) return null
  return open({
    model,
    prices: prices ?? {},
    limitUsd,
    spentUsd: state?.usage.costUsd ?? 0,
    outer: outerPurse,
    stop: (limit, count) => new RunStopped({ kind: 'limit', breach: { kind: 'cost_usd', limit, count } }),
  })
}
