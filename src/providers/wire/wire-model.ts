import { HarnessError } from '#contracts/errors.js'
import type { Model, ModelCapabilities } from '#core/model-session.js'
import { invalidOptions } from '#contracts/parse.js'
import { isObject } from '#util/json.js'
import { Mismatch } from '#util/mismatch.js'
import { environment } from '#util/platform/node.js'
import { keepSecretsOf } from '#util/secrets.js'
import { parseAs } from '#util/validate.js'
import { clientCall } from '../http/client-transport.js'
import type { Dispatcher, Connection } from '../http/open-transport.js'
import { Endpoint } from '../http/endpoint.js'
import type { ProviderOptions } from '../http/options.js'
import { openTransport } from '../http/open-transport.js'
import type { Transport, WireFormat } from '../http/wire-format.js'
import { apiKey, checkEffort, DEFAULT_MAX_RETRIES, serverUrl } from './options.js'
import { SessionModel } from './wire-session.js'

type Headers = Readonly<Record<string, string>>

/** An adapter's knowledge of its provider: everything that `wireModel` needs to create a model. */
export interface WireModelSpec {
  /** As in `AssistantEntry.provider`. */
  readonly provider: string
  readonly id: string
  /** Parsed by `parseModelOptions`. */
  readonly options: ProviderOptions
  readonly format: WireFormat
  /** Sent with every request, even by a `client`, such as `anthropic-version`. */
  readonly headers?: Headers
  /** Null: there is none, and `baseUrl` is required. */
  readonly defaultBaseUrl: string | null
  /** Environment variable that replaces `baseUrl`. */
  readonly baseUrlVariable?: string
  /** Environment variable that replaces `apiKey`. */
  readonly apiKeyVariable: string
  /** Requests may be sent without a key. Default false. */
  readonly keyOptional?: boolean
  /** The headers that hold the key. A `client` has its own. */
  readonly auth: (key: string) => Headers
  /** Headers that are sent with the key, and the environment variables that hold their values. */
  readonly accountHeaders?: Headers
  /** Method of the official client that sends a request, such as `responses.create`. */
  readonly clientCall: string
  /** The known capabilities of the model; `options.capabilities` override them field by field. */
  readonly capabilities: ModelCapabilities
  /** The server stores the conversation. Default false. */
  readonly chain?: boolean
  /** Opens what a session sends its requests over; `keeps`: the server keeps the conversation with it. Default: sessions share connections. */
  readonly line?: { readonly keeps: boolean; readonly open: (over: LineOver) => Promise<Transport> }
  /** What is a server's own may go to any host: the caller has named the provider. Default false. */
  readonly anyHost?: boolean
}

/** What is needed to reach a server. */
export type ServerSpec = Omit<WireModelSpec, 'id' | 'format' | 'capabilities'>

/** What a connection of a session is made of. */
export interface LineOver {
  readonly http: Transport
  readonly endpoint: () => Endpoint
  readonly options: ProviderOptions
}

/** The variables that OpenAI's official client sends too. */
export const OPENAI_ACCOUNT: Headers = {
  'openai-organization': 'OPENAI_ORG_ID',
  'openai-project': 'OPENAI_PROJECT_ID',
}

/**
 * A model of a wire format: resolves key, base URL and transport, and opens sessions. Throws `invalid_options` for an
 * empty id, a missing base URL and a reasoning effort that the model does not support. A missing key fails the first
 * request, with `missing_key`.
 */
export function wireModel(spec: WireModelSpec): Model {
  const { provider, id, options, format, chain = false } = spec
  if (typeof id !== 'string' || id.trim() === '') {
    throw invalidOptions('Expected the id of a model, such as `gpt-5.5`, got an empty one.')
  }
  const { baseUrl, client, maxOutputTokens, timeouts, reasoningEffort } = options
  if (spec.defaultBaseUrl === null && spec.baseUrlVariable === undefined && (baseUrl ?? client) === undefined) {
    throw invalidOptions(`Expected \`baseUrl\` to be given: \`${provider}\` has no default.`)
  }
  const limit = maxOutputTokens === undefined ? {} : { maxOutputTokens }
  const capabilities = { ...spec.capabilities, ...limit, ...options.capabilities }
  checkEffort(id, capabilities, reasoningEffort)
  const over = modelConnection(spec)
  const http = openTransport({ over, ...(timeouts !== undefined && { timeouts }) })
  const { line } = spec
  return new SessionModel({
    provider,
    nativeTo: () => nativeName(spec),
    model: id,
    format,
    capabilities,
    transport: http,
    ...(line !== undefined &&
      'endpoint' in over && {
        line: { keeps: line.keeps, open: () => line.open({ http, endpoint: over.endpoint, options }) },
      }),
    ...('endpoint' in over && { check: over.endpoint }),
    headers: inLowerCase(spec.headers),
    maxRetries: options.maxRetries ?? DEFAULT_MAX_RETRIES,
    defaults: { reasoningEffort },
    chain,
  })
}

/** The name of what is the server's own. At the provider's own address, it is that of the provider. */
function nativeName(spec: WireModelSpec): string {
  const { provider, options, defaultBaseUrl, baseUrlVariable } = spec
  const host = hostOf(serverAddress(options) || (environmentVariable(baseUrlVariable) ?? ''))
  return spec.anyHost === true || host === '' || host === hostOf(defaultBaseUrl ?? '')
    ? provider
    : `${provider}@${host}`
}

/** The address of the server that the options give, or an empty string. */
export function serverAddress({ baseUrl, client }: ProviderOptions): string {
  const address: unknown = baseUrl ?? (isObject(client) ? client['baseURL'] : undefined)
  return typeof address === 'string' ? address : ''
}

/** Host and port of a URL; an empty string for anything else. */
export function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : ''
}

/** The connection to a server. An official client has its own. */
export function modelConnection(spec: ServerSpec): Connection {
  const { client, fetch, dispatcher, headers } = spec.options
  if (client !== undefined) {
    keepClientSecrets(client, headers)
    return { kind: 'client', call: clientCall(client, spec.clientCall), headers: inLowerCase(headers) }
  }
  const endpoint = currentEndpoint(spec)
  if (fetch !== undefined) return { kind: 'fetch', endpoint, fetch }
  if (dispatcher !== undefined) return { kind: 'dispatcher', endpoint, dispatcher: dispatcher as Dispatcher }
  return { kind: 'default', endpoint }
}

/** An official client has a key of its own. */
function keepClientSecrets(client: object, headers: Headers = {}): void {
  const strings = Object.entries(client).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  keepSecretsOf(strings)
  keepSecretsOf(Object.entries(headers), true)
}

/** Reads the environment for each request, and creates a new endpoint only if something in it has changed. */
function currentEndpoint(spec: ServerSpec): () => Endpoint {
  const { options, baseUrlVariable, apiKeyVariable, accountHeaders = {} } = spec
  let known: Endpoint | null = null
  let address: string | undefined
  let key: string | undefined
  let account: Headers = {}
  return () => {
    const newAddress = options.baseUrl ?? environmentVariable(baseUrlVariable)
    const newKey = options.apiKey ?? environmentVariable(apiKeyVariable)
    let isSame = known !== null && newAddress === address && newKey === key
    const newAccount: Record<string, string> = {}
    for (const name in accountHeaders) {
      const value = environmentVariable(accountHeaders[name])
      if (value !== undefined) newAccount[name] = value
      isSame &&= value === account[name]
    }
    if (known !== null && isSame) return known
    const headers = inLowerCase({ ...authHeaders(spec, newKey, newAccount), ...options.headers })
    known = new Endpoint(baseUrlOf(spec, newAddress), headers)
    address = newAddress
    key = newKey
    account = newAccount
    return known
  }
}

function baseUrlOf({ provider, options, baseUrlVariable = '', defaultBaseUrl }: ServerSpec, address?: string): string {
  if (options.baseUrl !== undefined) return options.baseUrl
  if (address !== undefined) {
    const parsed = parseAs(serverUrl, address, `\`${baseUrlVariable}\``)
    if (parsed.ok) return parsed.value
    throw invalidOptions(parsed.problem)
  }
  if (defaultBaseUrl !== null) return defaultBaseUrl
  throw invalidOptions(`Expected a base URL for \`${provider}\`: give \`baseUrl\`, or set \`${baseUrlVariable}\`.`)
}

/** The headers with the key. The user's own headers may hold it in another way. */
function authHeaders(spec: ServerSpec, key: string | undefined, account: Headers): Headers {
  const { provider, options, apiKeyVariable } = spec
  if (key === undefined) {
    const names = Object.keys(options.headers ?? {})
    if (spec.keyOptional === true || names.some((name) => AUTH_HEADER.test(name))) return {}
    const message = `There is no API key for \`${provider}\`: set the environment variable \`${apiKeyVariable}\`, or give \`apiKey\`.`
    throw new HarnessError('missing_key', message)
  }
  if (!(apiKey.read(key) instanceof Mismatch)) return { ...spec.auth(key), ...account }
  const source = options.apiKey === undefined ? apiKeyVariable : 'apiKey'
  throw new HarnessError('missing_key', `Expected \`${source}\` to hold an API key, got something else.`)
}

const AUTH_HEADER = /^(authorization|api-key|x-api-key|x-goog-api-key)$/i

/** The value of an environment variable, without surrounding white space; undefined if it is empty. */
function environmentVariable(name: string | undefined): string | undefined {
  const value = name === undefined ? '' : environment(name)?.trim()
  return value === '' ? undefined : value
}

function inLowerCase(headers: Headers = {}): Headers {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}
