import type { TokenUsage } from './entry.js'
import type { ProviderFailure } from './provider-failure.js'
import type { JsonObject } from '#util/json.js'

/** The run that a session is opened for. */
export interface ModelRun {
  readonly runId: string
  /** Name of the subagent; null for the run at the top. */
  readonly agentName: string | null
  readonly metadata: JsonObject
  /** By which runs are found. */
  readonly labels: Readonly<Record<string, string>>
  readonly purpose: RequestPurpose
  /** It tries again what a recorded run did, from one of its turns. Default: it does not. */
  readonly isFork?: true
}

/** What requests are made for: `main` is the conversation itself. Who asks for something else gives it a name. */
export type RequestPurpose = 'main' | 'summarise' | 'judge' | 'plan' | 'decide' | (string & {})

/** A request that a provider has accepted and answers later, such as in a batch. */
export interface SubmittedRequest {
  readonly provider: string
  /** The provider's name of it. */
  readonly id: string
}

/** The model that an attempt asks: its provider, and the provider's name of it. */
export interface Candidate {
  readonly provider: string
  readonly model: string
  /** It is asked in a batch, which costs less. Default: it is not. */
  readonly batch?: true
}

/** One attempt of a model at a request. */
export interface Attempt {
  /** The most tokens of its reply, in place of `maxOutputTokens` of the turn; null: as that says. */
  readonly maxOutputTokens: number | null
  /**
   * Counts what it has cost, once: the usage of its reply, zeros if nothing was charged. Null, or never called: it keeps what was
   * reserved, except for a refusal, of status 400 and up. `ended` says how it failed; without it, it is the answer.
   */
  readonly settle: (usage: TokenUsage | null, ended?: AttemptEnd) => void
}

/** How an attempt ended. */
export interface AttemptEnd {
  /** The class of its failure. Default: none, it is the answer. */
  readonly failure?: ProviderFailure | null | undefined
  /** HTTP status of the provider's answer. Default: there was no answer. */
  readonly status?: number | null | undefined
  /** Deltas of it were emitted and are withdrawn. Default false. */
  readonly withdrawn?: boolean | undefined
  /** The model that answered, as the provider names it, if it has a price of its own. Default: the one that was asked. */
  readonly responseModel?: string | null | undefined
}

/** A wait before a request is sent. */
export interface RequestWait {
  /** Such as `rate_limit`, or a sentence. */
  readonly reason: string
  /** How long it will probably take. */
  readonly ms: number
}

/** One attempt of a model at a request. */
export interface RequestAttempt {
  readonly provider: string
  readonly model: string
  /** Null: it is the answer. */
  readonly failure: ProviderFailure | null
  /** HTTP status of the provider's answer; null if there was none. */
  readonly status: number | null
  /** How long it took. */
  readonly ms: number
  /** US dollars; null if they are unknown, or not counted. */
  readonly costUsd: number | null
  /** Its deltas were withdrawn. */
  readonly withdrawn: boolean
}
