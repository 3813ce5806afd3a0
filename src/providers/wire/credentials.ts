import { HarnessError } from '#contracts/errors.js'
import { invalidOptions } from '#contracts/parse.js'
import { isObject } from '#util/json.js'
import { Mismatch } from '#util/mismatch.js'
import { environment } from '#util/platform/node.js'
import { parseAs } from '#util/validate.js'
import { Endpoint } from '../http/endpoint.js'
import type { Headers } from '../http/endpoint.js'
import type { ProviderOptions } from '../http/options.js'
import { apiKey, serverUrl } from './options.js'

/** How the server of a provider is reached, and with which key. */
export interface ServerCredentials {
  /** As in `AssistantEntry.provider`. */
  readonly provider: string
  /** Parsed by `parseModelOptions`. */
  readonly options: ProviderOptions
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
  /** What is a server's own may go to any host: the caller has named the provider. Default false. */
  readonly anyHost?: boolean
}

/** The variables that OpenAI's official client sends too. */
export const OPENAI_ACCOUNT: Headers = {
  'openai-organization': 'OPENAI_ORG_ID',
  'openai-project': 'OPENAI_PROJECT_ID',
}

/** Reads the environment for each request, and creates a new endpoint only if something in it has changed. */
export function currentEndpoint(spec: ServerCredentials): () => Endpoint {
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

function baseUrlOf(
  { provider, options, baseUrlVariable = '', defaultBaseUrl }: ServerCredentials,
  address?: string,
): string {
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
function authHeaders(spec: ServerCredentials, key: string | undefined, account: Headers): Headers {
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

export function inLowerCase(headers: Headers = {}): Headers {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

/** The name of what is the server's own. At the provider's own address, it is that of the provider. */
export function nativeName(spec: ServerCredentials): string {
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
