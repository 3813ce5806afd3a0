import type { ModelCapabilities, ReasoningEffort } from '../../contracts/model.js'
import type { JsonObject } from '../../util/json.js'

/** What every model factory takes. */
export interface ProviderOptions {
  /** Default: the provider's environment variable, read when a request is made. */
  readonly apiKey?: string
  /** As the official clients mean it: with `/v1` for OpenAI and compatible servers, without for Anthropic. */
  readonly baseUrl?: string
  /** Sent with every request; they win over the adapter's own. */
  readonly headers?: Readonly<Record<string, string>>
  /** An official client to send with, in place of the default transport. */
  readonly client?: object
  /** Used in place of `node:http`. */
  readonly fetch?: typeof globalThis.fetch
  /** An undici dispatcher to send with, such as a `ProxyAgent` or an `Agent` with HTTP/2. */
  readonly dispatcher?: object
  readonly timeouts?: Timeouts
  /** Repetitions of a failed request. Default 2. */
  readonly maxRetries?: number
  /** Cap of one reply, in tokens. */
  readonly maxOutputTokens?: number
  /** Sent only when set. */
  readonly temperature?: number
  readonly reasoningEffort?: ReasoningEffort
  /** Prompt caching where the provider has it. Default true; `ttl` where it can be chosen. */
  readonly promptCache?: boolean | { readonly ttl?: '5m' | '1h'; readonly key?: string }
  /** Overrides what is known of the model. */
  readonly capabilities?: ModelCapabilities
  /** Merged into every request body: objects deeply, other values replaced. */
  readonly extraBody?: JsonObject
}

/** Longest time of each phase of a request, in ms. `null`: no limit. */
export interface Timeouts {
  /** To an open connection, TLS included. Default 10,000. Part of `firstByteMs` where something of yours connects. */
  readonly connectMs?: number | null
  /** From the request to the first byte of the answer. Default 300,000. */
  readonly firstByteMs?: number | null
  /** Between two chunks of the answer. Default 300,000: reasoning models are silent for minutes. */
  readonly idleMs?: number | null
  /** The whole attempt. Default: no limit. */
  readonly totalMs?: number | null
}
