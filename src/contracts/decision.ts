import type { TokenUsage } from './entry.js'
import type { JsonInput } from '#util/json.js'

/** A question with a closed list of answers. */
export interface Question<Choice extends string, Model = never> {
  readonly question: string
  /** At least two, no two the same. */
  readonly choices: readonly Choice[]
  /** What it is about. The model gets it as data. Default: nothing. */
  readonly context?: JsonInput | undefined
  /** The model that is asked: a small one is enough. Default: that of the run. */
  readonly model?: Model | undefined
}

/** The answer of a model to a question. */
export interface Decided<Choice extends string> {
  readonly choice: Choice
  readonly usage: TokenUsage
  /** US dollars; null if they are unknown, or not counted. */
  readonly costUsd: number | null
}
