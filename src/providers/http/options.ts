import type { ModelCapabilities, ReasoningEffort } from '#core/model-session.js'
import type { JsonObject } from '#util/json.js'

/** The options of every model factory. */
export interface ProviderOptions {
  /** Default: the provider's environment variable, read when a request is made. */
  readonly apiKey?: string | undefined
  /** As in the official clients: with `/v1` for OpenAI and compatible servers, without it for Anthropic. */
  readonly baseUrl?: string | undefined
  /** Sent with every request; they override the adapter's own. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** An official client that sends the requests, in place of the default transport. */
  readonly client?: object | undefined
  /** Used in place of `node:http`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** An undici dispatcher that sends the requests, such as a `ProxyAgent` or an `Agent` with HTTP/2. */
  readonly dispatcher?: object | undefined
  readonly timeouts?: Timeouts | undefined
  /** Retries of a failed request. Default 2. */
  readonly maxRetries?: number | undefined
  /** Cap of one reply, in tokens. */
  readonly maxOutputTokens?: number | undefined
  /** Sent only when set. */
  readonly temperature?: number | undefined
  readonly reasoningEffort?: ReasoningEffort | undefined
  /**
   * Whether readers see what a reasoning model thinks, as summaries by the provider; `concise` and `detailed` where it has a choice.
   * `none`: they do not. It changes neither how much the model thinks nor what that costs. Default: the provider's.
   */
  readonly reasoningSummary?: ReasoningSummary | undefined
  /** Prompt caching, if the provider has it. Default true. `ttl` applies if the provider has a choice. */
  readonly promptCache?:
    boolean | { readonly ttl?: '5m' | '1h' | undefined; readonly key?: string | undefined } | undefined
  /** Overrides the known capabilities of the model. */
  readonly capabilities?: ModelCapabilities | undefined
  /** Merged into every request body: objects deeply, `tools` added to those of the run, other values replaced. */
  readonly extraBody?: JsonObject | undefined
}

export type ReasoningSummary = 'auto' | 'concise' | 'detailed' | 'none'

/**
 * Longest time of each phase of a request, in ms. `null`: no limit. A request that timed out after it was sent is not
 * repeated, except by a local server: the provider may charge for it.
 */
export interface Timeouts {
  /** To an open connection, TLS included. Default 10,000. Part of `firstByteMs` with a `client`, `fetch` or `dispatcher`. */
  readonly connectMs?: number | null | undefined
  /** From the request to the first byte of the answer. Default 300,000. */
  readonly firstByteMs?: number | null | undefined
  /** Between two chunks of the answer. Default 300,000: reasoning models are silent for minutes. */
  readonly idleMs?: number | null | undefined
  /** The whole attempt. Default: no limit. */
  readonly totalMs?: number | null | undefined
}

export type TimeLimits = { readonly [Name in keyof Timeouts]-?: number | null }

/** The limits of a request, in ms; null disables one. */
export function timeLimitsOf(timeouts: Timeouts = {}): TimeLimits {
  const { connectMs = 10_000, firstByteMs = 300_000, idleMs = 300_000, totalMs = null } = timeouts
  return { connectMs, firstByteMs, idleMs, totalMs }
}
