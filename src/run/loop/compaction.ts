import type { Compaction } from '../../contracts/model.js'
import { costOf, inDollars } from '../../money/price.js'
import type { RunSetup } from '../core/plan.js'
import type { PaidCompaction, ViewContext } from '../extension/view.js'

/** Compaction by the provider of the model, reserved and charged like a request; null if its API has none. */
export function compactionOf({ model, constants, spending, price }: RunSetup): ViewContext['compact'] {
  if (model.compact === undefined) return null
  return async (entries, signal) => {
    const ask = async (maxOutputTokens: number | null): Promise<Asked> => {
      const limit = maxOutputTokens === null ? {} : { maxOutputTokens }
      const compaction = await model.compact?.(entries, constants, { signal, ...limit })
      if (compaction === undefined) throw new TypeError(`The model \`${model.id}\` returned no compaction.`)
      return { compaction, entry: { usage: compaction.usage } }
    }
    if (spending !== null) {
      const { turn, cost } = await spending.pay({ transcript: entries, constants, signal, ask, isAside: true })
      return paid(turn, cost)
    }
    const asked = await ask(null)
    const known = await price
    return paid(asked, known === null ? null : costOf(known, asked.compaction.usage))
  }
}

interface Asked {
  readonly compaction: Compaction
  readonly entry: Pick<Compaction, 'usage'>
}

/** `cost` is in micro-dollars. */
function paid({ compaction }: Asked, cost: number | null): PaidCompaction {
  return { ...compaction, costUsd: cost === null ? null : inDollars(cost) }
}
