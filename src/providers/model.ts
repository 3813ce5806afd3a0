import type { Model, ModelCapabilities } from '../model/contracts.js'
import type { ProviderOptions } from './options.js'
import type { WireFormat } from './wire.js'

/** What an adapter knows of its provider; all that `wireModel` needs to make a model of it. */
export interface WireModelSpec {
  /** As in `AssistantEntry.provider`. */
  readonly provider: string
  readonly id: string
  /** As the user gave them. Checked here: unknown keys are refused with the nearest known name. */
  readonly options: ProviderOptions
  /** Names of the options that this factory takes beside those of `ProviderOptions`, such as `chain`; it checks them itself. */
  readonly ownOptions?: readonly string[]
  readonly format: WireFormat
  /** Sent with every request, over a handed-in client too, such as `anthropic-version`. */
  readonly headers?: Readonly<Record<string, string>>
  /** Null: there is none, `baseUrl` must be given. */
  readonly defaultBaseUrl: string | null
  /** Environment variable that stands in for `baseUrl`. */
  readonly baseUrlVariable?: string
  /** Environment variables that stand in for `apiKey`; the first that is set. */
  readonly apiKeyVariables: readonly string[]
  /** Requests are sent without a key when there is none. Default false. */
  readonly keyOptional?: boolean
  /** Headers that only our own transports send: the key, an organisation. Called for each request; not without a key. */
  readonly auth: (key: string) => Readonly<Record<string, string>>
  /** Method of the official client that sends a request, such as `responses.create`. */
  readonly clientCall: string
  /** What is known of the model; `options.capabilities` win field by field. */
  readonly capabilities: ModelCapabilities
  /** The server keeps the conversation. Default false. */
  readonly chain?: boolean
}

/** A model from a wire format: resolves key, base URL and transport, checks the options, opens sessions. */
export function wireModel(spec: WireModelSpec): Model {
  throw new Error(`wireModel of ${spec.id} is being written.`)
}
