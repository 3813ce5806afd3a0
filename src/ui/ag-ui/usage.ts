import type { AssistantEntry } from '../../index.js'
import type { AgUiUsage } from './event.js'

const COUNTS = {
  inputTokens: 'inputTokens',
  outputTokens: 'outputTokens',
  reasoningTokens: 'reasoningTokens',
  cacheReadTokens: 'cachedInputTokens',
  cacheWriteTokens: 'cacheWriteInputTokens',
} as const

type Count = keyof typeof COUNTS

/** The tokens of a stretch, by provider and model. Counts that no reply gave are absent. */
export class StretchUsage {
  readonly #models = new Map<string, Record<string, string | number>>()

  add({ provider, model, usage }: Pick<AssistantEntry, 'provider' | 'model' | 'usage'>): void {
    const key = JSON.stringify([provider, model])
    const sums = this.#models.get(key) ?? { provider, model }
    this.#models.set(key, sums)
    for (const count of Object.keys(COUNTS) as Count[]) {
      const given = usage[count]
      if (given !== null) sums[COUNTS[count]] = Number(sums[COUNTS[count]] ?? 0) + given
    }
  }

  get all(): readonly AgUiUsage[] {
    return [...this.#models.values()].map((sums) => {
      const { inputTokens, outputTokens } = sums
      const isWhole = inputTokens !== undefined && outputTokens !== undefined
      return isWhole ? { ...sums, totalTokens: Number(inputTokens) + Number(outputTokens) } : sums
    })
  }
}
