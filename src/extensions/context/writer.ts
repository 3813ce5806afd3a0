import { Harness } from '#harness/harness.js'
import { HarnessError } from '#contracts/errors.js'
import type { RunBudget } from '#core/money-port.js'
import { Budget } from '#run/money/budget.js'
import type { Model } from '#core/model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import { knownWindow, priceOf } from '#run/money/find-price.js'
import type { Prices } from '#run/money/find-price.js'
import { inferModel } from '#providers/infer-model.js'
import { addTokens, NO_TOKENS } from '#contracts/entry.js'
import type { TokenUsage } from '#contracts/entry.js'
import type { ViewContext } from '#core/extension/view-policy.js'
import { estimateText } from '#contracts/estimate.js'

/** A model that writes about a conversation. */
export interface WriterOptions {
  /** The model that writes: a small, cheap one is enough. */
  readonly model: ModelRef | Model
  /** Longest text, in tokens. Default 2,000. */
  readonly maxTokens?: number | undefined
  /** Longest time for one text, repetitions included, in ms. Default 60,000. */
  readonly timeoutMs?: number | undefined
  /** Prices of the model if they are not known, for the run's cost. Default: the known prices. */
  readonly prices?: Prices | undefined
}

/** A text, with what it has cost. */
export interface Written {
  /** Null: the model failed, was too slow, or wrote nothing that can be used. */
  readonly text: string | null
  readonly usage: TokenUsage
  /** In US dollars; null if it is unknown. */
  readonly costUsd: number | null
}

/** A text without sense is asked for once more. */
const ATTEMPTS = 2
/** A request that was refused as too long is sent again with half as much, so often. */
const MOST_REFUSALS = 3
/** Longest input, in tokens; less for a model with a smaller window. */
const LONGEST = 60_000
/** What the window must also hold: instructions, and the difference between the estimate and the model's own count. */
const ROOM = 0.7

/** Asks a model for texts. It fails in bounded time, with bounded output, and never throws. */
export class SummaryWriter {
  readonly #options: WriterOptions
  readonly #instructions: string
  #harness: Harness | null = null
  /** Longest input of this model, in tokens; null until it is known. */
  #longest: number | null = null

  constructor(options: WriterOptions, instructions: string) {
    this.#options = options
    this.#instructions = instructions
  }

  /** When a text that is asked for now must be there, by `performance.now()`. */
  get until(): number {
    return performance.now() + (this.#options.timeoutMs ?? 60_000)
  }

  /** `quote` gives the input in at most so many tokens. */
  async write(
    quote: (mostTokens: number) => string,
    { signal, budget, until = this.until }: Pick<ViewContext, 'signal' | 'budget'> & { readonly until?: number },
  ): Promise<Written> {
    const { maxTokens = 2000 } = this.#options
    let written: Written = { text: null, usage: NO_TOKENS, costUsd: 0 }
    let refusals = 0
    for (let attempt = 1; attempt <= ATTEMPTS && written.text === null;) {
      const timeMs = Math.floor(until - performance.now())
      if (timeMs <= 0 || signal.aborted) break
      this.#longest ??= await this.#inputTokens(maxTokens)
      const tried = await this.#attempt(quote(this.#longest), { signal, budget, timeMs, maxTokens })
      written = addWritten(written, tried)
      if (tried.isTooLong && refusals++ < MOST_REFUSALS) this.#longest = Math.floor(this.#longest / 2)
      else attempt += 1
    }
    return written
  }

  /** By the window of the model, if it is known. */
  async #inputTokens(maxTokens: number): Promise<number> {
    const { model } = this.#options
    const asked = typeof model === 'string' ? await inferModel(model).catch(() => null) : model
    if (asked !== null) await priceOf(asked).catch(() => null)
    const window = asked === null ? null : (asked.capabilities.contextTokens ?? knownWindow(asked))
    if (asked !== null && asked !== model) await asked.close?.()
    return Math.min(LONGEST, Math.max(MOST_REFUSALS, ((window ?? Infinity) - maxTokens) * ROOM))
  }

  async #attempt(
    prompt: string,
    {
      signal,
      budget,
      timeMs,
      maxTokens,
    }: { signal: AbortSignal; budget: RunBudget | null; timeMs: number; maxTokens: number },
  ): Promise<Written & { readonly isTooLong?: boolean }> {
    this.#harness ??= this.#open(maxTokens)
    try {
      const limits = { timeMs, modelRequests: 1 }
      const { text, usage } = await this.#harness.run(prompt, {
        signal,
        limits,
        ...(budget instanceof Budget && { budget }),
      })
      return { text: hasSense(text, maxTokens) ? text.trim() : null, usage, costUsd: usage.costUsd }
    } catch (error) {
      const failure = error instanceof HarnessError ? error : null
      const usage = failure?.run?.usage
      const isTooLong = failure?.code === 'context_overflow'
      return { text: null, usage: usage ?? NO_TOKENS, costUsd: usage?.costUsd ?? 0, isTooLong }
    }
  }

  #open(maxTokens: number): Harness {
    const { model, prices } = this.#options
    const settings = { maxOutputTokens: maxTokens }
    return new Harness({
      model,
      instructions: this.#instructions,
      builtinTools: [],
      settings,
      ...(prices && { prices }),
    })
  }

  async close(): Promise<void> {
    await this.#harness?.close()
  }
}

/** What a run is told of a policy that has no text. */
export function fallbackWarning(policy: string, { model }: WriterOptions): string {
  const name = typeof model === 'string' ? model : `${model.provider}:${model.id}`
  return `\`${policy}\`: \`${name}\` wrote nothing that can be used; old results are cleared instead.`
}

function addWritten(one: Written, other: Written): Written {
  return {
    text: other.text,
    usage: addTokens(one.usage, other.usage),
    costUsd: one.costUsd === null || other.costUsd === null ? null : one.costUsd + other.costUsd,
  }
}

/** Longest line, in characters. */
const LONGEST_LINE = 10_000

/** False for texts that are empty, much too long, or repeat themselves. */
export function hasSense(text: string, maxTokens: number): boolean {
  if (text.trim() === '' || estimateText(text) > 2 * maxTokens) return false
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  if (lines.some((line) => line.length > LONGEST_LINE) || isRepeated(lines, 6, 1 / 2)) return false
  return !isRepeated(text.split(/\s+/), 100, 1 / 10)
}

function isRepeated(parts: readonly string[], least: number, share: number): boolean {
  return parts.length >= least && new Set(parts).size < parts.length * share
}
