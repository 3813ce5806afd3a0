import type { Model } from '../../contracts/model.js'
import type { Spending } from '../../money/spending.js'
import type { RunContext } from '../core/context.js'
import { RunStopped } from '../core/failure.js'
import type { RunPlan } from '../core/plan.js'
import type { RunRules } from '../machine/rules.js'
import type { RunState } from '../machine/state.js'

/** The money of a run that begins, or goes on from `state`; null where nobody asks what it costs. */
export async function spendingOf(
  { recording, outerPurse }: RunContext,
  { prices }: RunPlan,
  model: Model,
  { limits }: RunRules,
  state: RunState | null,
): Promise<Spending | null> {
  // What a recorded reply cost is in the recording.
  if (recording !== null || (limits.costUsd === null && prices === null && outerPurse === null)) return null
  const { openSpending } = await import('../../money/open.js')
  return openSpending({
    model,
    prices: prices ?? {},
    limitUsd: limits.costUsd,
    spentUsd: state?.usage.costUsd ?? 0,
    outer: outerPurse,
    stop: (limit, count) => new RunStopped({ kind: 'limit', breach: { kind: 'cost_usd', limit, count } }),
  })
}
