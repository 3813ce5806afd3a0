import type { Model, ModelCapabilities } from '#core/model-session.js'
import { invalidOptions } from '#contracts/parse.js'
import { keepSecretsOf } from '#util/secrets.js'
import { clientCall } from '../http/client-transport.js'
import type { Connection } from '../http/open-transport.js'
import type { Dispatcher } from '../http/proxy.js'
import type { Endpoint, Headers } from '../http/endpoint.js'
import type { ProviderOptions } from '../http/options.js'
import { openTransport } from '../http/open-transport.js'
import type { Transport, WireFormat } from '../http/wire-format.js'
import { currentEndpoint, inLowerCase, nativeName } from './credentials.js'
import type { ServerCredentials } from './credentials.js'
import { checkEffort, DEFAULT_MAX_RETRIES } from './options.js'
import { SessionModel } from './wire-session.js'

/** An adapter's knowledge of its provider: everything that `wireModel` needs to create a model. */
export interface WireModelSpec extends ServerCredentials {
  readonly id: string
  readonly format: WireFormat
  /** Sent with every request, even by a `client`, such as `anthropic-version`. */
  readonly headers?: Headers
  /** Method of the official client that sends a request, such as `responses.create`. */
  readonly clientCall: string
  /** The known capabilities of the model; `options.capabilities` override them field by field. */
  readonly capabilities: ModelCapabilities
  /** The server stores the conversation. Default false. */
  readonly chain?: boolean
  /** Opens what a session sends its requests over; `keeps`: the server keeps the conversation with it. Default: sessions share connections. */
  readonly line?: { readonly keeps: boolean; readonly open: (over: LineOver) => Promise<Transport> }
}

/** What is needed to reach a server. */
export type ServerSpec = Omit<WireModelSpec, 'id' | 'format' | 'capabilities'>

/** What a connection of a session is made of. */
export interface LineOver {
  readonly http: Transport
  readonly endpoint: () => Endpoint
  readonly options: ProviderOptions
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
