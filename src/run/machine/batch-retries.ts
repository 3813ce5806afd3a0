import type { RunUsage } from '../../contracts/result.js'
import { retryBudget } from './rules.js'
import type { RunRules } from './rules.js'
import type { SettledCall } from './settled.js'

/** A tool that failed more often in a row than its budget allows. */
export interface Exceeded {
  readonly toolName: string
  readonly budget: number
  readonly count: number
}

interface Counts {
  readonly rules: RunRules
  /** Retryable failures in a row, by tool; changed in place. */
  readonly streaks: Record<string, number>
  /** All of them, by tool. */
  readonly toolRetries: RunUsage['toolRetries']
}

/** Retryable failures are counted in model order once the batch is whole, so that they do not depend on who ended first. */
export function countRetries(
  calls: readonly { readonly name: string; readonly settled: SettledCall | null }[],
  { rules, streaks, toolRetries }: Counts,
): { readonly toolRetries: RunUsage['toolRetries']; readonly exceeded: Exceeded | null } {
  let [counts, exceeded]: [RunUsage['toolRetries'], Exceeded | null] = [toolRetries, null]
  for (const { name, settled } of calls) {
    if (settled === null || settled.cancelled) continue
    if (settled.ok) streaks[name] = 0
    if (settled.retryKind === null) continue
    const count = (streaks[name] = countOf(streaks, name) + 1)
    counts = { ...counts, [name]: countOf(counts, name) + 1 }
    const budget = retryBudget(rules, name)
    if (count > budget) exceeded ??= { toolName: name, budget, count }
  }
  return { toolRetries: counts, exceeded }
}

/** A tool may be called `constructor`. */
function countOf(counts: Readonly<Record<string, number>>, name: string): number {
  return Object.hasOwn(counts, name) ? (counts[name] ?? 0) : 0
}
