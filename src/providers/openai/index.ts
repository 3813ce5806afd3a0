import type { Model, ModelCapabilities } from '../../contracts/model.js'
import { boolean, partial } from '../../util/shape.js'
import { wireModel } from '../wire/model.js'
import { parseModelOptions, PROVIDER_OPTIONS } from '../wire/options.js'
import type { ProviderOptions } from '../http/options.js'
import { API_INPUTS } from './content.js'
import { responsesFormat } from './format.js'
import { PROVIDER } from './native.js'
import { isReasoningModel } from './reasoning-models.js'

export interface OpenAiOptions extends ProviderOptions {
  /**
   * The server keeps the conversation (`store: true`): a request sends what is new and names the response that it goes
   * on from. A run that is resumed sends its whole transcript once. Default false: nothing is stored, and every request
   * holds the whole conversation, encrypted reasoning included.
   */
  readonly chain?: boolean
}

const OPTIONS = partial<OpenAiOptions>({ ...PROVIDER_OPTIONS, chain: boolean })

/**
 * A model of OpenAI, or of a server that speaks its Responses API: `openai('gpt-5.5', { reasoningEffort: 'high' })`.
 * The key is `apiKey` or `$OPENAI_API_KEY`, the server `baseUrl` or `$OPENAI_BASE_URL`; `$OPENAI_ORG_ID` and
 * `$OPENAI_PROJECT_ID` are sent where they are set. `client` is an official `OpenAI` client or a variant of it.
 *
 * Whether the model reasons is told by its name. Say so in `capabilities.reasoningEfforts` where the name does not, as
 * for an Azure deployment: an empty list is a model that does not reason.
 *
 * A refusal ends a turn with `refusal` and no text: its words are in `turn.refusal`, and in an opaque part of the entry. A custom
 * tool (plain text input, declared by `extraBody.tools`) is called with `{ input }`. Lists of `extraBody` and
 * `providerOptions` replace those of the request, `include` excepted: one of `tools` must hold the functions as well.
 */
export function openai(id: string, options: OpenAiOptions = {}): Model {
  const parsed = parseModelOptions(OPTIONS, options, 'openai')
  return wireModel({
    provider: PROVIDER,
    id,
    options: parsed,
    format: responsesFormat(id, parsed),
    defaultBaseUrl: 'https://api.openai.com/v1',
    baseUrlVariable: 'OPENAI_BASE_URL',
    apiKeyVariables: ['OPENAI_API_KEY'],
    auth: (key) => ({ authorization: `Bearer ${key}`, ...accountHeaders() }),
    clientCall: 'responses.create',
    capabilities: capabilitiesOf(id),
    chain: parsed.chain ?? false,
  })
}

function capabilitiesOf(id: string): ModelCapabilities {
  return {
    supportsJsonSchemaOutput: true,
    defaultStructuredOutputMode: 'native',
    inputs: API_INPUTS,
    ...(isReasoningModel(id) === false && { reasoningEfforts: [] }),
  }
}

/** What the official client sends too. */
function accountHeaders(): Record<string, string> {
  const organization = process.env['OPENAI_ORG_ID']?.trim() ?? ''
  const project = process.env['OPENAI_PROJECT_ID']?.trim() ?? ''
  return {
    ...(organization !== '' && { 'openai-organization': organization }),
    ...(project !== '' && { 'openai-project': project }),
  }
}
