import type { Model, ModelCapabilities } from '#core/model-session.js'
import { invalidOptions } from '#contracts/parse.js'
import { boolean, oneOf, partial } from '#util/validate.js'
import { late } from '#util/late.js'
import { timeLimitsOf } from '../http/options.js'
import { dispatcherFor } from '../http/proxy.js'
import type { Transport } from '../http/wire-format.js'
import { OPENAI_ACCOUNT } from '../wire/credentials.js'
import { wireModel } from '../wire/wire-model.js'
import type { LineOver } from '../wire/wire-model.js'
import { parseModelOptions, PROVIDER_OPTIONS } from '../wire/options.js'
import type { ProviderOptions } from '../http/options.js'
import { OPENAI_HOSTED } from '../hosted/openai-tools.js'
import { lateFormat } from '../http/wire-format.js'
import { API_INPUTS, isReasoningModel, KNOWN, PROVIDER, searchesTools } from './models.js'

export interface OpenAiOptions extends ProviderOptions {
  /**
   * The server stores the conversation (`store: true`): a request sends only the new entries and the id of the response
   * that it continues. A resumed run sends its whole transcript once. Default false: nothing is stored, and every
   * request contains the whole conversation, including encrypted reasoning.
   */
  readonly chain?: boolean | undefined
  /**
   * `websocket`: each run has one connection for its requests, and a request sends only the new entries: the server remembers the
   * conversation while the connection is open, and stores nothing. After a lost connection the whole conversation is sent once.
   * A server without WebSockets is asked over HTTP. Not with `client` or `fetch`. Default `http`.
   */
  readonly transport?: 'http' | 'websocket' | undefined
  /**
   * The provider works on each response in the background and stores it for some minutes (`store: true`). Its id is stored before it is
   * awaited: after a lost connection or a crash that response is fetched, and no second one is asked for. Not with `client` or
   * `transport: 'websocket'`. Default false.
   */
  readonly background?: boolean | undefined
}

const OPTIONS = partial<OpenAiOptions>({
  ...PROVIDER_OPTIONS,
  chain: boolean,
  transport: oneOf('http', 'websocket'),
  background: boolean,
})

const REQUEST = late(() => import('./request.js'))

/**
 * A model of OpenAI, or of a server with its Responses API: `openai('gpt-5.5', { reasoningEffort: 'high' })`. The key is
 * `apiKey` or `$OPENAI_API_KEY`, the server `baseUrl` or `$OPENAI_BASE_URL`; `$OPENAI_ORG_ID` and `$OPENAI_PROJECT_ID`
 * are sent if set. `client` is an official `OpenAI` client or a variant of it.
 *
 * Reasoning models are recognized by name. If the name does not show it, as with Azure deployments, set
 * `capabilities.reasoningEfforts`; an empty list means that the model does not reason.
 *
 * A refusal ends a turn with `refusal` and no text: its text is in `turn.refusal`, and in an opaque part of the entry. A
 * custom tool (plain text input, declared by `extraBody.tools`) is called with `{ input }`. Tools of `extraBody` and
 * `providerOptions` are added to those of the run, and so are items of `include`; other lists are replaced.
 */
export function openai(id: string, options: OpenAiOptions = {}): Model {
  const parsed = parseModelOptions(OPTIONS, options, 'openai')
  const line = parsed.transport === 'websocket' ? WEBSOCKET : parsed.background === true ? BACKGROUND : null
  const other = line?.excludes.find((name) => parsed[name] !== undefined && parsed[name] !== false)
  if (other !== undefined)
    throw invalidOptions(`Expected \`${line?.option}\` without \`${other}\`, which sends requests in another way.`)
  return wireModel({
    provider: PROVIDER,
    id,
    options: parsed,
    format: lateFormat(KNOWN, REQUEST, ({ responsesFormat }) => responsesFormat(id, parsed)),
    defaultBaseUrl: 'https://api.openai.com/v1',
    baseUrlVariable: 'OPENAI_BASE_URL',
    apiKeyVariable: 'OPENAI_API_KEY',
    auth: (key) => ({ authorization: `Bearer ${key}` }),
    accountHeaders: OPENAI_ACCOUNT,
    clientCall: 'responses.create',
    capabilities: capabilitiesOf(id),
    chain: parsed.chain ?? false,
    ...(line !== null && { line }),
  })
}

/** Both are loaded by the first request that needs them. */
const WEBSOCKET = {
  option: "transport: 'websocket'",
  excludes: ['background', 'client', 'fetch'] as const,
  keeps: true,
  async open({ http, endpoint, options: { timeouts, dispatcher } }: LineOver): Promise<Transport> {
    const { SocketTransport } = await import('../transports/socket.js')
    const limits = timeLimitsOf(timeouts)
    return new SocketTransport({ http, endpoint, limits, dispatcher: (url) => dispatcherFor(url, dispatcher) })
  },
}

const BACKGROUND = {
  option: 'background: true',
  excludes: ['client'] as const,
  keeps: false,
  async open({ http }: LineOver): Promise<Transport> {
    const { BackgroundTransport } = await import('../transports/background.js')
    return new BackgroundTransport(http)
  },
}

function capabilitiesOf(id: string): ModelCapabilities {
  return {
    supportsJsonSchemaOutput: true,
    defaultStructuredOutputMode: 'native',
    inputs: API_INPUTS,
    hostedTools: OPENAI_HOSTED,
    ...(isReasoningModel(id) === false && { reasoningEfforts: [] }),
    ...(searchesTools(id) && { toolSearch: 'parameters' }),
  }
}
