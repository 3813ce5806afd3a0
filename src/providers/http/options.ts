import type { ModelCapabilities, ReasoningEffort } from '../../contracts/model.js'
import type { JsonObject } from '../../util/json.js'

/** The options of every model factory. */
export interface ProviderOptions {
  /** Default: the provider's environment variable, read when a request is made. */
  readonly apiKey?: string
  /** As in the official clients: with `/v1` for OpenAI and compatible servers, without it for Anthropic. */
  readonly baseUrl?: string
  /** Sent with every request; they override the adapter's own. */
  readonly headers?: Readonly<Record<string, string>>
  /** An official client that sends the requests, in place of the default transport. */
  readonly client?: object
  /** Used in place of `node:http`. */
  readonly fetch?: typeof globalThis.fetch
  /** An undici dispatcher that sends the requests, such as a `ProxyAgent` or an `Agent` with HTTP/2. */
  readonly dispatcher?: object
  readonly timeouts?: Timeouts
  /** Retries of a failed request. Default 2. */
  readonly maxRetries?: number
  /** Cap of one reply, in tokens. */
  readonly maxOutputTokens?: number
  /** Sent only when set. */
  readonly temperature?: number
  readonly reasoningEffort?: ReasoningEffort
  /** Prompt caching, if the provider has it. Default true. `ttl` applies if the provider has a choice. */
  readonly promptCache?: boolean | { readonly ttl?: '5m' | '1h'; readonly key?: string }
  /** Overrides the known capabilities of the model. */
  readonly capabilities?: ModelCapabilities
  /** Merged into every request body: objects deeply, `tools` added to those of the run, other values replaced. */
  readonly extraBody?: JsonObject
}

/** Longest time of each phase of a request, in ms. `null`: no limit. */
export interface Timeouts {
  /** To an open connection, TLS included. Default 10,000. Part of `firstByteMs` with a `client`, `fetch` or `dispatcher`. */
  readonly connectMs?: number | null
  /** From the request to the first byte of the answer. Default 300,000. */
  readonly firstByteMs?: number | null
  /** Between two chunks of the answer. Default 300,000: reasoning models are silent for minutes. */
  readonly idleMs?: number | null
  /** The whole attempt. Default: no limit. */
  readonly totalMs?: number | null
}
