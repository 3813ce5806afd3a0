import { HarnessError } from '../../contracts/errors.js'
import type { Model, ModelCapabilities, ModelSession } from '../../contracts/model.js'
import { invalidOptions } from '../../contracts/parse.js'
import { Mismatch } from '../../util/mismatch.js'
import { parseAs } from '../../util/shape.js'
import { apiKey, checkEffort, serverUrl } from './options.js'
import { clientCall } from '../http/client-call.js'
import type { Dispatcher } from '../http/dispatcher-exchange.js'
import { Endpoint } from '../http/endpoint.js'
import type { ProviderOptions } from '../http/options.js'
import { WireSession } from './session.js'
import { openTransport } from '../http/transport.js'
import type { Connection } from '../http/transport.js'
import type { Transport, WireFormat } from '../http/wire.js'

/** An adapter's knowledge of its provider: everything that `wireModel` needs to create a model. */
export interface WireModelSpec {
  /** As in `AssistantEntry.provider`. */
  readonly provider: string
  readonly id: string
  /** Parsed by `parseModelOptions`. */
  readonly options: ProviderOptions
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

/**
 * A model from a wire format: resolves key, base URL and transport, opens sessions. Throws `invalid_options` for an empty
 * id, a missing base URL and a reasoning effort that the model does not take; a missing key fails the first request, with
 * `missing_key`.
 */
export function wireModel(spec: WireModelSpec): Model {
  const { id, options } = spec
  if (typeof id !== 'string' || id.trim() === '') {
    throw invalidOptions('Expected the id of a model, such as `gpt-5.5`, got an empty one.')
  }
  if (spec.defaultBaseUrl === null && spec.baseUrlVariable === undefined && !hasPlace(options)) {
    throw invalidOptions(`Expected \`baseUrl\` to be given: \`${spec.provider}\` has no default.`)
  }
  const model = new WireModel(spec)
  checkEffort(id, model.capabilities, options.reasoningEffort)
  return model
}

function hasPlace({ baseUrl, client }: ProviderOptions): boolean {
  return baseUrl !== undefined || client !== undefined
}

/** Repetitions of a failed request, where nothing else is said. */
const DEFAULT_MAX_RETRIES = 2

class WireModel implements Model {
  readonly provider: string
  readonly id: string
  readonly capabilities: ModelCapabilities
  readonly #spec: WireModelSpec
  readonly #headers: Readonly<Record<string, string>>
  readonly #transport: Transport
  #endpoint: { readonly baseUrl: string; readonly auth: AuthHeaders; readonly endpoint: Endpoint } | null = null
  #isClosed = false

  constructor(spec: WireModelSpec) {
    this.provider = spec.provider
    this.id = spec.id
    const { maxOutputTokens, capabilities } = spec.options
    const cap = maxOutputTokens === undefined ? {} : { maxOutputTokens }
    this.capabilities = { ...spec.capabilities, ...cap, ...capabilities }
    this.#spec = spec
    this.#headers = inLowerCase(spec.headers)
    const { timeouts } = spec.options
    this.#transport = openTransport({ over: this.#connection(), ...(timeouts !== undefined && { timeouts }) })
  }

  openSession(): ModelSession {
    if (this.#isClosed) throw new HarnessError('closed', `The model \`${this.id}\` is closed.`)
    const { provider, format, options, chain = false } = this.#spec
    return new WireSession({
      provider,
      model: this.id,
      format,
      capabilities: this.capabilities,
      transport: this.#transport,
      headers: this.#headers,
      maxRetries: options.maxRetries ?? DEFAULT_MAX_RETRIES,
      chain,
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#transport.close()
  }

  #connection(): Connection {
    const { options, clientCall: method } = this.#spec
    const { client, fetch, dispatcher, headers } = options
    const endpoint = (): Endpoint => this.#currentEndpoint()
    if (client !== undefined) return { kind: 'client', call: clientCall(client, method), headers: inLowerCase(headers) }
    if (fetch !== undefined) return { kind: 'fetch', endpoint, fetch }
    if (dispatcher !== undefined) return { kind: 'dispatcher', endpoint, dispatcher: dispatcher as Dispatcher }
    return { kind: 'default', endpoint }
  }

  /** Made anew only when something in the environment has changed. */
  #currentEndpoint(): Endpoint {
    const baseUrl = baseUrlOf(this.#spec)
    const auth = authOf(this.#spec)
    const known = this.#endpoint
    if (known?.baseUrl === baseUrl && areSame(known.auth, auth)) return known.endpoint
    const endpoint = new Endpoint(baseUrl, { ...inLowerCase(auth), ...inLowerCase(this.#spec.options.headers) })
    this.#endpoint = { baseUrl, auth, endpoint }
    return endpoint
  }
}

function baseUrlOf({ provider, options, baseUrlVariable, defaultBaseUrl }: WireModelSpec): string {
  if (options.baseUrl !== undefined) return options.baseUrl
  const given = baseUrlVariable === undefined ? undefined : variable(baseUrlVariable)
  if (given !== undefined) {
    const parsed = parseAs(serverUrl, given, `\`${baseUrlVariable ?? ''}\``)
    if (parsed.ok) return parsed.value
    throw invalidOptions(parsed.problem)
  }
  if (defaultBaseUrl !== null) return defaultBaseUrl
  throw invalidOptions(
    `Expected a base URL for \`${provider}\`: give \`baseUrl\`, or set \`${baseUrlVariable ?? ''}\`.`,
  )
}

type AuthHeaders = Readonly<Record<string, string>>

function areSame(some: AuthHeaders, others: AuthHeaders): boolean {
  const names = Object.keys(some)
  return names.length === Object.keys(others).length && names.every((name) => some[name] === others[name])
}

/** The headers that hold the key. A header that the user gave may hold it in another way. */
function authOf({ provider, options, apiKeyVariables, keyOptional, auth }: WireModelSpec): AuthHeaders {
  const name = options.apiKey === undefined ? apiKeyVariables.find((each) => variable(each) !== undefined) : undefined
  const key = options.apiKey ?? (name === undefined ? undefined : variable(name))
  if (key === undefined) {
    if (keyOptional === true || hasAuthHeader(options)) return {}
    const variables = apiKeyVariables.map((each) => `\`${each}\``).join(' or ')
    const message = `There is no API key for \`${provider}\`: set the environment variable ${variables}, or give \`apiKey\`.`
    throw new HarnessError('missing_key', message)
  }
  if (!(apiKey.read(key) instanceof Mismatch)) return auth(key)
  throw new HarnessError('missing_key', `Expected \`${name ?? 'apiKey'}\` to hold an API key, got something else.`)
}

function hasAuthHeader({ headers = {} }: ProviderOptions): boolean {
  return Object.keys(headers).some((name) => /^(authorization|api-key|x-api-key)$/i.test(name))
}

/** An environment variable, if it holds something. */
function variable(name: string): string | undefined {
  const value = process.env[name]?.trim()
  return value === '' ? undefined : value
}

function inLowerCase(headers: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}
