import type { Model } from '#core/model-session.js'
import { environment } from '#util/platform/node.js'
import { filledString, partial } from '#util/validate.js'
import { late } from '#util/late.js'
import { OPENAI_ACCOUNT, serverAddress } from '../wire/credentials.js'
import { wireModel } from '../wire/wire-model.js'
import type { WireModelSpec } from '../wire/wire-model.js'
import { chatHosted } from '../hosted/chat-tools.js'
import { parseModelOptions, PROVIDER_OPTIONS } from '../wire/options.js'
import type { ProviderOptions } from '../http/options.js'
import { lateFormat } from '../http/wire-format.js'
import { COMPLETIONS, DIALECT, dialectFor, OPENAI, OPENROUTER } from './dialect.js'
import type { ChatDialect } from './dialect.js'

export type { ChatDialect, MediaTypes } from './dialect.js'

/** Either `baseUrl` is the address of the server, with `/v1`, such as `http://127.0.0.1:11434/v1`; or `client` has it. */
export type OpenAiCompatibleOptions = CompatibleOptions & ({ readonly baseUrl: string } | { readonly client: object })

interface CompatibleOptions extends ProviderOptions {
  /**
   * Name of the provider in entries, events and `providerOptions`. Default `openai-compatible`. Reasoning, signatures and other
   * parts in a server's own form are sent back to the provider of the same name; by default, to the same host only.
   */
  readonly provider?: string
  /** Differences of the server. Default: those known of the server at `baseUrl`, otherwise cautious assumptions. */
  readonly dialect?: Partial<ChatDialect>
}

const COMPATIBLE_OPTIONS = partial<CompatibleOptions>({ ...PROVIDER_OPTIONS, provider: filledString, dialect: DIALECT })
const OPTIONS = partial<ProviderOptions>(PROVIDER_OPTIONS)

/**
 * A model of a server with OpenAI's chat completions: llama.cpp, vLLM, Ollama, LM Studio, Groq, DeepSeek, Mistral and
 * others. A key is optional: `apiKey`, or else `$OPENAI_COMPATIBLE_API_KEY`. Throws `invalid_options`.
 */
export function openaiCompatible(id: string, options: OpenAiCompatibleOptions): Model {
  const given = parseModelOptions(COMPATIBLE_OPTIONS, options, 'openaiCompatible')
  const { provider = 'openai-compatible', dialect = {}, ...defaults } = given
  return chatModel(id, defaults, {
    dialect: dialectFor(serverAddress(defaults), { ...(/claude/i.test(id) && { anyKeys: false }), ...dialect }),
    server: {
      provider,
      defaultBaseUrl: null,
      apiKeyVariable: 'OPENAI_COMPATIBLE_API_KEY',
      keyOptional: true,
      anyHost: given.provider !== undefined,
      capabilities: { permissiveNativeOverride: true },
    },
  })
}

/**
 * A model of OpenRouter, such as `anthropic/claude-sonnet-5`. The key is `apiKey` or `$OPENROUTER_API_KEY`; requests
 * are attributed to the app that `$OPENROUTER_APP_URL` and `$OPENROUTER_APP_TITLE` name. With `promptCache`, requests
 * for a Claude model are routed to Anthropic itself, the only host whose cache follows the conversation.
 */
export function openrouter(id: string, options: ProviderOptions = {}): Model {
  const cacheMarks = /^anthropic\//.test(id)
  return chatModel(id, parseModelOptions(OPTIONS, options, 'openrouter'), {
    dialect: { ...OPENROUTER, cacheMarks },
    server: {
      provider: 'openrouter',
      defaultBaseUrl: 'https://openrouter.ai/api/v1',
      baseUrlVariable: 'OPENROUTER_BASE_URL',
      apiKeyVariable: 'OPENROUTER_API_KEY',
      headers: openrouterApp(),
      capabilities: { permissiveNativeOverride: true },
    },
  })
}

/**
 * A model of OpenAI with chat completions, in place of the Responses API. The key is `apiKey` or `$OPENAI_API_KEY`;
 * `$OPENAI_ORG_ID` and `$OPENAI_PROJECT_ID` are sent if set.
 */
export function openaiChat(id: string, options: ProviderOptions = {}): Model {
  return chatModel(id, parseModelOptions(OPTIONS, options, 'openaiChat'), {
    dialect: OPENAI,
    server: {
      provider: 'openai-chat',
      defaultBaseUrl: 'https://api.openai.com/v1',
      baseUrlVariable: 'OPENAI_BASE_URL',
      apiKeyVariable: 'OPENAI_API_KEY',
      accountHeaders: OPENAI_ACCOUNT,
      capabilities: { supportsJsonSchemaOutput: true, defaultStructuredOutputMode: 'native' },
    },
  })
}

const REQUEST = late(() => import('./request.js'))

type Server = Omit<WireModelSpec, 'id' | 'options' | 'format' | 'auth' | 'clientCall'>

interface ServedBy {
  readonly dialect: ChatDialect
  readonly server: Server
}

function chatModel(id: string, options: ProviderOptions, { dialect, server }: ServedBy): Model {
  const { provider } = server
  const hostedTools = chatHosted(provider, id)
  const rules = { id, provider, dialect, defaults: options }
  return wireModel({
    ...server,
    capabilities: { ...(provider === 'openai-compatible' ? {} : { hostedTools }), ...server.capabilities },
    id,
    options,
    format: lateFormat(COMPLETIONS, REQUEST, ({ chatFormat }) => chatFormat(rules, options.capabilities?.inputs)),
    auth: (key) => ({ authorization: `Bearer ${key}` }),
    clientCall: 'chat.completions.create',
  })
}

function openrouterApp(): Readonly<Record<string, string>> {
  const [url = '', title = ''] = [environment('OPENROUTER_APP_URL'), environment('OPENROUTER_APP_TITLE')]
  return { ...(url !== '' && { 'http-referer': url }), ...(title !== '' && { 'x-title': title }) }
}
