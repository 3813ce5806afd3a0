import type { Model } from '../../contracts/model.js'
import { isObject } from '../../util/json.js'
import { filledString, partial } from '../../util/shape.js'
import { wireModel } from '../wire/model.js'
import type { WireModelSpec } from '../wire/model.js'
import { parseModelOptions, PROVIDER_OPTIONS } from '../wire/options.js'
import type { ProviderOptions } from '../http/options.js'
import { DIALECT, dialectFor, OPENAI, OPENROUTER } from './dialect.js'
import type { ChatDialect } from './dialect.js'
import { chatFormat } from './format.js'

export type { ChatDialect, MediaTypes } from './dialect.js'

/** Either `baseUrl` says where the server is, with `/v1`, such as `http://127.0.0.1:11434/v1`; or `client` knows it. */
export type OpenAiCompatibleOptions = CompatibleOptions & ({ readonly baseUrl: string } | { readonly client: object })

interface CompatibleOptions extends ProviderOptions {
  /**
   * Name of the provider in entries, events and `providerOptions`. Default `openai-compatible`. Reasoning is sent back
   * to the provider of the same name, so give two servers two names.
   */
  readonly provider?: string
  /** In what the server differs from others. Default: what is known of the server at `baseUrl`, else cautious guesses. */
  readonly dialect?: Partial<ChatDialect>
}

const COMPATIBLE_OPTIONS = partial<CompatibleOptions>({ ...PROVIDER_OPTIONS, provider: filledString, dialect: DIALECT })
const OPTIONS = partial<ProviderOptions>(PROVIDER_OPTIONS)

/**
 * A model of a server that speaks OpenAI's chat completions: llama.cpp, vLLM, Ollama, LM Studio, Groq, DeepSeek,
 * Mistral and others. A key is sent when there is one: `apiKey`, else `$OPENAI_COMPATIBLE_API_KEY`. Throws
 * `invalid_options`.
 */
export function openaiCompatible(id: string, options: OpenAiCompatibleOptions): Model {
  const given = parseModelOptions(COMPATIBLE_OPTIONS, options, 'openaiCompatible')
  const { provider = 'openai-compatible', dialect = {}, ...defaults } = given
  return chatModel(id, defaults, {
    dialect: dialectFor(placeOf(defaults), dialect),
    server: {
      provider,
      defaultBaseUrl: null,
      apiKeyVariables: ['OPENAI_COMPATIBLE_API_KEY'],
      keyOptional: true,
      capabilities: { permissiveNativeOverride: true },
    },
  })
}

/**
 * A model of OpenRouter, such as `anthropic/claude-sonnet-5`. The key is `apiKey`, else `$OPENROUTER_API_KEY`; requests
 * are attributed to the app that `$OPENROUTER_APP_URL` and `$OPENROUTER_APP_TITLE` name. With `promptCache`, requests
 * for a Claude model are routed to Anthropic itself, the one host whose cache follows the conversation.
 */
export function openrouter(id: string, options: ProviderOptions = {}): Model {
  const cacheMarks = /^anthropic\//.test(id)
  return chatModel(id, parseModelOptions(OPTIONS, options, 'openrouter'), {
    dialect: { ...OPENROUTER, cacheMarks },
    server: {
      provider: 'openrouter',
      defaultBaseUrl: 'https://openrouter.ai/api/v1',
      baseUrlVariable: 'OPENROUTER_BASE_URL',
      apiKeyVariables: ['OPENROUTER_API_KEY'],
      headers: openrouterApp(),
      capabilities: { permissiveNativeOverride: true },
    },
  })
}

/**
 * A model of OpenAI by chat completions, in place of the Responses API. The key is `apiKey`, else `$OPENAI_API_KEY`;
 * `$OPENAI_ORG_ID` and `$OPENAI_PROJECT_ID` are sent where they are set.
 */
export function openaiChat(id: string, options: ProviderOptions = {}): Model {
  return chatModel(id, parseModelOptions(OPTIONS, options, 'openaiChat'), {
    dialect: OPENAI,
    server: {
      provider: 'openai-chat',
      defaultBaseUrl: 'https://api.openai.com/v1',
      baseUrlVariable: 'OPENAI_BASE_URL',
      apiKeyVariables: ['OPENAI_API_KEY'],
      accountHeaders: openaiAccount,
      capabilities: { supportsJsonSchemaOutput: true, defaultStructuredOutputMode: 'native' },
    },
  })
}

/** Where requests go, as far as it is known here. */
function placeOf({ baseUrl, client }: ProviderOptions): string {
  const place: unknown = baseUrl ?? (isObject(client) ? client['baseURL'] : undefined)
  return typeof place === 'string' ? place : ''
}

type Server = Omit<WireModelSpec, 'id' | 'options' | 'format' | 'auth' | 'clientCall'> & {
  /** Sent beside the key. */
  readonly accountHeaders?: () => Headers
}

type Headers = Readonly<Record<string, string>>

function chatModel(
  id: string,
  options: ProviderOptions,
  { dialect, server }: { readonly dialect: ChatDialect; readonly server: Server },
): Model {
  const { accountHeaders, ...spec } = server
  const { provider } = spec
  return wireModel({
    ...spec,
    id,
    options,
    format: chatFormat({ id, provider, dialect, defaults: options }, options.capabilities?.inputs),
    auth: (key) => ({ authorization: `Bearer ${key}`, ...accountHeaders?.() }),
    clientCall: 'chat.completions.create',
  })
}

function openrouterApp(): Headers {
  const { OPENROUTER_APP_URL: url, OPENROUTER_APP_TITLE: title } = process.env
  return withoutEmpty({ 'http-referer': url, 'x-title': title })
}

function openaiAccount(): Headers {
  const { OPENAI_ORG_ID: organization, OPENAI_PROJECT_ID: project } = process.env
  return withoutEmpty({ 'openai-organization': organization, 'openai-project': project })
}

function withoutEmpty(headers: Readonly<Record<string, string | undefined>>): Headers {
  return Object.fromEntries(
    Object.entries(headers).filter((header): header is [string, string] => header[1] !== undefined && header[1] !== ''),
  )
}
