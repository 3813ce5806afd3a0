import { invalidOptions, parse } from '#contracts/parse.js'
import type { HostedTool } from '#core/model-session.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import type { Complete, Given, PartialFields } from '#util/validate.js'
import {
  boolean,
  filledString,
  integer,
  jsonObject,
  list,
  matching,
  object,
  oneOf,
  optional,
  partial,
  record,
  secret,
  where,
} from '#util/validate.js'
import { keepSecret } from '#util/secrets.js'
import type { JsonObject } from '#util/json.js'
import { keepAuthorization } from './hosted-definition.js'

/** The options of every hosted tool. */
export interface HostedOptions {
  /**
   * Calls in one reply. Providers that count calls enforce it, and a limit of money reserves the price of so many. Default 8, and 32
   * for a connector.
   */
  readonly maxUses?: number | undefined
  /** Fields for the tool in the request of a provider, by its name: `{ anthropic: { type: 'web_search_20260318' } }`. Default: none. */
  readonly providerOptions?: Readonly<Record<string, JsonObject>> | undefined
}

/** Which pages a hosted tool reads. */
export interface HostedDomains {
  /** Only these, without `https://`; those below them too: `example.com`, `example.com/docs`. Not with `blockedDomains`. Default: all. */
  readonly allowedDomains?: readonly string[] | undefined
  /** All but these. Default: none. */
  readonly blockedDomains?: readonly string[] | undefined
}

/** About where the person is that results are for. */
export interface UserLocation {
  readonly city?: string | undefined
  readonly region?: string | undefined
  /** Two letters: `GB`. */
  readonly country?: string | undefined
  /** As in `Europe/London`. */
  readonly timezone?: string | undefined
}

export interface WebSearchOptions extends HostedOptions, HostedDomains {
  /** Default: unknown. */
  readonly userLocation?: UserLocation | undefined
  /** How much of what it finds the model reads, where the provider lets one choose. Default: the provider's. */
  readonly contextSize?: 'low' | 'medium' | 'high' | undefined
}

export interface WebFetchOptions extends HostedOptions, HostedDomains {
  /** Tokens of a page that the model reads. Default: the provider's. */
  readonly maxContentTokens?: number | undefined
  /** Answers cite the pages, where the provider can; not with a schema for the answer, which excludes it. Default true. */
  readonly citations?: boolean | undefined
}

export interface CodeExecutionOptions extends HostedOptions {
  /** Ids of the provider's files that the code can read. Default: none. */
  readonly fileIds?: readonly string[] | undefined
}

export interface FileSearchOptions extends HostedOptions {
  /** Ids of the provider's stores of files, such as `vs_…`. */
  readonly storeIds: readonly string[]
  /** Pieces that one search gives. Default: the provider's. */
  readonly maxResults?: number | undefined
}

export interface ImageGenerationOptions extends HostedOptions {
  /** Default: the provider's choice. */
  readonly size?: string | undefined
  readonly quality?: 'low' | 'medium' | 'high' | 'auto' | undefined
  readonly format?: 'png' | 'jpeg' | 'webp' | undefined
  readonly background?: 'transparent' | 'opaque' | 'auto' | undefined
}

export interface ConnectorOptions extends HostedOptions {
  /** Name of the server in requests, events and sources; letters, digits, `_` and `-`. */
  readonly name: string
  /** Address of an MCP server that the provider reaches. */
  readonly url?: string | undefined
  /** A connector of the provider itself, such as `connector_gmail`, in place of an address. */
  readonly connectorId?: string | undefined
  /** OAuth token for the server: it is sent with each request, and never logged. Default: none. */
  readonly authorization?: string | undefined
  /** The tools of the server that the model can call. Default: all. */
  readonly allowedTools?: readonly string[] | undefined
  readonly description?: string | undefined
}

const SHARED = { maxUses: integer(1, 1000), providerOptions: record(jsonObject) }
const NEVER_REQUIRED = { maxUses: optional(SHARED.maxUses), providerOptions: optional(SHARED.providerOptions) }
const domains = list(matching(/^[^\s/:@]+\.[^\s/:@]+(\/\S*)?$|^localhost$/, 'a domain without `https://`'))
const DOMAINS: PartialFields<HostedDomains> = { allowedDomains: domains, blockedDomains: domains }

/**
 * A search of the web that the provider executes within its reply. Texts of the reply cite the pages (`annotations`, `result.sources`).
 * Throws `invalid_options`.
 *
 * @example
 *   const harness = new Harness({ model: 'anthropic:claude-sonnet-5', tools: [webSearch({ allowedDomains: ['example.org'] })] })
 *   const { text, sources } = await harness.run('What is new?')
 *   for (const { url, title } of sources) console.log(title, url)
 */
export function webSearch(options: WebSearchOptions = {}): ToolSpec {
  const place = partial<UserLocation>({
    city: filledString,
    region: filledString,
    country: matching(/^[A-Z]{2}$/, 'two capital letters'),
    timezone: filledString,
  })
  const fields = { ...SHARED, ...DOMAINS, userLocation: place, contextSize: oneOf('low', 'medium', 'high') }
  const config = oneListOf(parse(partial<WebSearchOptions>(fields), options, '`webSearch`'), 'webSearch')
  return hostedTool('web_search', config, 'Searches the web.')
}

/**
 * Reads pages whose address is in the conversation; the provider fetches them within its reply. Throws `invalid_options`.
 *
 * @example
 *   new Harness({ model: 'anthropic:claude-sonnet-5', tools: [webSearch(), webFetch({ maxUses: 3, maxContentTokens: 20_000 })] })
 */
export function webFetch(options: WebFetchOptions = {}): ToolSpec {
  const fields = { ...SHARED, ...DOMAINS, maxContentTokens: integer(1), citations: boolean }
  const config = oneListOf(parse(partial<WebFetchOptions>(fields), options, '`webFetch`'), 'webFetch')
  return hostedTool('web_fetch', config, 'Reads web pages.')
}

/**
 * Runs code on machines of the provider, within its reply. Files and installed packages are there as long as the provider keeps
 * its container. Throws `invalid_options`.
 *
 * @example
 *   new Harness({ model: 'openai:gpt-5.5', tools: [codeExecution({ fileIds: ['file-1'] })] })
 */
export function codeExecution(options: CodeExecutionOptions = {}): ToolSpec {
  const shape = partial<CodeExecutionOptions>({ ...SHARED, fileIds: list(filledString) })
  return hostedTool('code_execution', parse(shape, options, '`codeExecution`'), 'Runs code.')
}

/**
 * Searches stores of files that the provider keeps. Texts of the reply cite the files. Throws `invalid_options`.
 *
 * @example
 *   new Harness({ model: 'openai:gpt-5.5', tools: [fileSearch({ storeIds: ['vs_1'], maxResults: 5 })] })
 */
export function fileSearch(options: FileSearchOptions): ToolSpec {
  const some = where(list(filledString), 'a list of at least one id', (ids) => ids.length > 0)
  const shape = object<FileSearchOptions>({ ...NEVER_REQUIRED, storeIds: some, maxResults: optional(integer(1)) })
  const config = parse(shape, options, '`fileSearch`')
  return hostedTool('file_search', config, 'Searches files.')
}

/**
 * Makes images, which are parts of the reply: `{ type: 'image', data, mediaType }`. Throws `invalid_options`.
 *
 * @example
 *   const { transcript } = await new Harness({ model: 'openai:gpt-5.5', tools: [imageGeneration()] }).run('Draw a lighthouse.')
 *   const images = transcript.flatMap((entry) => (entry.role === 'assistant' ? entry.parts : [])).filter(({ type }) => type === 'image')
 */
export function imageGeneration(options: ImageGenerationOptions = {}): ToolSpec {
  const shape = partial<ImageGenerationOptions>({
    ...SHARED,
    size: filledString,
    quality: oneOf('low', 'medium', 'high', 'auto'),
    format: oneOf('png', 'jpeg', 'webp'),
    background: oneOf('transparent', 'opaque', 'auto'),
  })
  return hostedTool('image_generation', parse(shape, options, '`imageGeneration`'), 'Makes images.')
}

/**
 * The tools of an MCP server that the provider itself connects to and calls, within its reply. No call of them is admitted, approved
 * or recorded by the harness, so servers that change things belong into `mcpServers` instead. Throws `invalid_options`.
 *
 * @example
 *   const wiki = connector({ name: 'wiki', url: 'https://wiki.example/mcp', allowedTools: ['read_page'] })
 *   new Harness({ model: 'anthropic:claude-sonnet-5', tools: [wiki] })
 */
export function connector(options: ConnectorOptions): ToolSpec {
  const shape = object<ConnectorOptions>({
    ...NEVER_REQUIRED,
    name: matching(/^[\w-]{1,64}$/, '1 to 64 letters, digits, `_` or `-`'),
    url: optional(matching(/^https?:\/\/\S+$/, 'an address with `https://`')),
    connectorId: optional(filledString),
    authorization: optional(secret(filledString)),
    allowedTools: optional(list(filledString)),
    description: optional(filledString),
  })
  const { authorization, ...config } = parse(shape, options, '`connector`')
  if ((config.url === undefined) === (config.connectorId === undefined))
    throw invalidOptions('Expected either `url` or `connectorId` for `connector`.')
  const spec = hostedTool('connector', config, config.description ?? `The tools of \`${config.name}\`.`)
  if (authorization !== undefined && spec.hosted !== undefined) {
    keepSecret(authorization)
    keepAuthorization(spec.hosted.config, authorization)
  }
  return spec
}

function oneListOf<T extends Given<HostedDomains>>(config: T, factory: string): T {
  if (config.allowedDomains === undefined || config.blockedDomains === undefined) return config
  throw invalidOptions(`Expected \`allowedDomains\` or \`blockedDomains\` for \`${factory}\`, got both.`)
}

const MAX_USES = 8
const MAX_CONNECTOR_USES = 32

/** The tool of a kind. Its options are the arguments that policies see. */
function hostedTool(kind: HostedTool['kind'], options: Given<HostedOptions>, description: string): ToolSpec {
  const isConnector = kind === 'connector'
  const { name: server, url, allowedDomains } = options as JsonObject
  const name = isConnector && typeof server === 'string' ? server : kind
  const hosts = Array.isArray(allowedDomains) ? allowedDomains.map((each) => String(each).replace(/\/.*$/s, '')) : ['*']
  const isWeb = kind === 'web_search' || kind === 'web_fetch'
  const reached = typeof url === 'string' && URL.canParse(url) ? [new URL(url).hostname] : []
  const defaults: Complete<Pick<HostedOptions, 'maxUses'>> = { maxUses: isConnector ? MAX_CONNECTOR_USES : MAX_USES }
  const config = Object.freeze({ ...defaults, ...options }) as JsonObject
  return Object.freeze<ToolSpec>({
    name,
    description,
    parameters: { type: 'object' },
    annotations: { readOnly: isWeb || kind === 'file_search', openWorld: true },
    reach: kind === 'code_execution' ? { programs: ['*'] } : { hosts: isWeb ? hosts : reached },
    ...(isConnector && { metadata: { source: 'mcp', mcp_server_id: name } }),
    hosted: Object.freeze({ kind, config }),
    call: () => Promise.resolve(notCallable(name)),
  })
}

function notCallable(name: string): Awaited<ReturnType<ToolSpec['call']>> {
  const content = `\`${name}\` was not run: the provider of the model executes it within a reply. It cannot be called like other tools.`
  return { kind: 'failed', errorType: 'HostedTool', content, retry: true }
}
