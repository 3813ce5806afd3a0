import { functionOf, milliseconds, number, where } from '#util/shape.js'
import type { PartialFields } from '#util/shape.js'
import type { TranscriptEntry } from '#contracts/entry.js'

/** When a policy acts, and which entries it leaves alone. */
export interface TriggerOptions {
  /**
   * Length of the next request at which the policy acts: up to 1 a share of the model's window, above 1 a number of input
   * tokens. Default 0.75. If the window is unknown, a share has no effect until the provider refuses a request as too long.
   */
  readonly at?: number | undefined
  /**
   * The policy acts earlier, if that saves a fifth of the window, once nothing was said for this long, in ms: the provider's
   * cache is gone then anyway. Default: never.
   */
  readonly idleMs?: number | undefined
  /** Entries that always stay as they are. The first request and the prompt of the run stay anyway. Default: none. */
  readonly pinned?: ((entry: TranscriptEntry) => boolean) | undefined
}

export const TRIGGER: PartialFields<TriggerOptions> = {
  at: where(number(0.05), 'a share of the window (0.05 to 1) or a number of tokens', (at) => at <= 1 || at >= 100),
  idleMs: milliseconds,
  pinned: functionOf(),
}
