import type { Model } from '#core/model-session.js'
import { invalidOptions } from '#contracts/parse.js'
import { partial } from '#util/validate.js'
import { late } from '#util/late.js'
import type { ProviderOptions } from '../http/options.js'
import { wireModel } from '../wire/wire-model.js'
import { parseModelOptions, PROVIDER_OPTIONS } from '../wire/options.js'
import { lateFormat } from '../http/wire-format.js'
import { knownContent, modelCapabilities, PROVIDER } from './models.js'

/** `baseUrl` ends with the version, such as `/v1beta`. The official client has methods of another form, so none can be given. */
export type GeminiOptions = Omit<ProviderOptions, 'client'>

const OPTIONS = partial<ProviderOptions>(PROVIDER_OPTIONS)

const REQUEST = late(() => import('./request.js'))

/**
 * A model of the Gemini API (`generateContent`), such as `gemini('gemini-3-pro')`. The key is `apiKey` or `$GEMINI_API_KEY`, and
 * is sent in a header; the address is `baseUrl`, `$GEMINI_BASE_URL` or that of Google. Prompts are cached by the API itself.
 * Thought signatures go back unchanged. Fields of the API's own are given in `extraBody`, or in `providerOptions.google` of a
 * run. Throws `invalid_options`.
 *
 * @example
 * const model = gemini('gemini-3-pro', { reasoningEffort: 'low' })
 * await using harness = new Harness({ model, root: '.' })
 * const { text, usage } = await harness.run('What does this project do?')
 */
export function gemini(id: string, options: GeminiOptions = {}): Model {
  const defaults = parseModelOptions(OPTIONS, options, 'gemini')
  if (defaults.client !== undefined) throw invalidOptions('Expected `gemini` without `client`: use `fetch`.')
  // Vertex AI has the same API, without ids of calls.
  const rules = { id, defaults, hasCallIds: defaults.baseUrl?.includes('aiplatform.') !== true }
  return wireModel({
    provider: PROVIDER,
    id,
    options: defaults,
    format: lateFormat(knownContent(id), REQUEST, ({ contentFormat }) => contentFormat(rules)),
    defaultBaseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    baseUrlVariable: 'GEMINI_BASE_URL',
    apiKeyVariable: 'GEMINI_API_KEY',
    auth: (key) => ({ 'x-goog-api-key': key }),
    clientCall: '',
    capabilities: modelCapabilities(id),
  })
}
