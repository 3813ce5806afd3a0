import type { ConformanceApi } from './api.js'
import type { Chance } from './chance.js'
import type { Stage } from './stage.js'
import type { Talk } from './talk.js'

/** One case of a law. */
export interface Case {
  readonly stage: Stage
  readonly api: ConformanceApi
  readonly chance: Chance
  /** A new talk with the model that is tried. The marks in one of another name are others. */
  readonly talk: (name?: string) => Talk
}

export interface LawText {
  /** What it says, in a sentence. */
  readonly says: string
  /** Cases to be tried, as a share of those asked for, and one at least. Default 1; 0 where nothing in it is chance. */
  readonly share?: number
  /** Rejects with what is wrong. */
  readonly holds: (given: Case) => Promise<void>
}
