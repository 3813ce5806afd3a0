import type { ContentPart, NativePart, TokenUsage, TranscriptEntry } from '#contracts/entry.js'
import type { Compaction } from '../model-session.js'
import type { RunBudget } from '../money-port.js'
import type { ExtensionContext } from './context.js'

/** A range of entries to show in another form from now on. */
export interface ProposedChange {
  /** Id of the first entry of the range. */
  readonly from: string
  /** Id of the last entry of the range, which is included. */
  readonly to: string
  /**
   * Replaces the range. Of a single tool result only its content is replaced. Any other range is widened to whole steps, a
   * reply together with the results of its calls, and shown as one message; an empty string leaves the range out.
   */
  readonly shown: string | readonly ContentPart[]
  /**
   * The provider's own form of the first part of `shown`: models of this provider get it in place of that part, other models get
   * the part. Only for a range that begins with the first entry.
   */
  readonly native?: NativePart | undefined
}

/** The changes that a view policy proposes. An empty list records that it tried without effect. */
export interface ViewProposal {
  readonly changes: readonly ProposedChange[]
  /** Estimated input tokens of the next request, before and after. */
  readonly tokensBefore?: number
  readonly tokensAfter?: number
  /** Tokens used to prepare the changes, if a model was asked. */
  readonly usage?: TokenUsage
  /** Cost of preparing the changes, in US dollars. */
  readonly costUsd?: number
}

/** A text for a range of entries that a policy has written ahead of time. */
export interface Preparation {
  /** Ids of the first and the last entry of the range; both belong to it. */
  readonly from: string
  readonly to: string
  /** Null: it could not be written. */
  readonly shown: string | null
  readonly usage?: TokenUsage
  /** In US dollars. */
  readonly costUsd?: number
}

/** The run before a request, for a view policy. */
export interface ViewContext<out Deps = unknown> extends ExtensionContext<Deps> {
  /** The entries as the request would send them. */
  readonly view: readonly TranscriptEntry[]
  /** Number of the view: 0 until it changes for the first time. */
  readonly generation: number
  /** Input tokens of the last request; null if none has sent this view, or if the provider did not report them. */
  readonly lastInputTokens: number | null
  /** Tokens that the model takes, input and output together; null if unknown. */
  readonly window: number | null
  /** True if the model is offered a tool of this name. */
  readonly hasTool: (name: string) => boolean
  /** Id of the entry with the prompt of this run. */
  readonly promptId: string
  /**
   * How often the provider has refused this request since it is longer than the window; 0: not at all. A policy that can make
   * it shorter must then do so.
   */
  readonly refusals: number
  /** The last refusal was about the bytes of the request, or its pictures, not about its tokens. */
  readonly isTooLarge: boolean
  /** Bytes of a request that the provider takes; null if unknown. */
  readonly mostBytes: number | null
  /**
   * Pays for requests of the policy to other models, as the `budget` of their runs: what they may cost is reserved within the
   * limits of this run. Null if nothing limits its cost.
   */
  readonly budget: RunBudget | null
  /**
   * Has the provider of the model write entries of the view, from the first one on to the end of a step, in a shorter form of its
   * own. The cost is reserved within the limits of this run; usage and cost belong into the proposal. Rejects if the provider
   * cannot. Null if its API has no such form.
   */
  readonly compact: ((entries: readonly TranscriptEntry[], signal: AbortSignal) => Promise<PaidCompaction>) | null
  /** Tells the readers of the stream about a problem, as a `warning`. */
  readonly warn?: ((message: string) => void) | undefined
  /** The texts that this policy has prepared and not shown yet, also in earlier runs of the conversation. */
  readonly prepared: readonly { readonly from: string; readonly to: string; readonly shown: string }[]
  /**
   * Stores a text for later, as the event `view_prepared`. Can be called while the run continues; resolves when it is stored,
   * and rejects if the run has ended.
   */
  readonly prepare: (preparation: Preparation) => Promise<void>
}

export interface PaidCompaction extends Compaction {
  /** In US dollars; null if it is unknown. */
  readonly costUsd: number | null
}

/**
 * Decides before each request about earlier entries that the model gets in another form; null: no change. Must return at once
 * if there is nothing to do. A policy that throws is counted, and the view stays as it is.
 */
export type ViewPolicy<in Deps = unknown> = (
  context: ViewContext<Deps>,
) => ViewProposal | null | Promise<ViewProposal | null>
