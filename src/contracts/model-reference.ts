import { HarnessError } from './errors.js'
import { didYouMean } from '#util/suggest.js'

/** Providers that no reference can name. */
const OTHER_PROVIDERS = new Set(
  'vertex google-vertex azure bedrock amazon-bedrock mistral groq xai deepseek cohere perplexity together togetherai fireworks cerebras'.split(
    ' ',
  ),
)
const OF_OTHER_PROVIDERS =
  ' Use `openrouter:…`, `fromAiSdk(model)` with its AI SDK package, or `openaiCompatible(id, { baseUrl })`, both of `thinharness/providers`.'

/**
 * `provider:model`, such as `anthropic:claude-sonnet-5`; for a local server `local:NAME@http://127.0.0.1:8080/v1`. Editors suggest the
 * providers; any text is accepted, since references come from settings too, and checked when the model is made.
 */
export type ModelRef = `${ProviderName}:${string}` | (string & {})

export interface ParsedModelRef {
  readonly provider: ProviderName
  readonly id: string
  /** Of a local server; null: the provider's own. */
  readonly baseUrl: string | null
}

export type ProviderName = (typeof PROVIDER_NAMES)[number]

/** Providers that a reference can name. */
const PROVIDER_NAMES = ['anthropic', 'google', 'local', 'openai', 'openrouter'] as const

/** Splits at the first colon. Throws `invalid_options` unless it refers to a known provider. */
export function parseModelRef(ref: ModelRef): ParsedModelRef {
  const colon = ref.indexOf(':')
  const [provider, id] = [ref.slice(0, colon), ref.slice(colon + 1)]
  if (colon < 1 || id === '') {
    throw new HarnessError(
      'invalid_options',
      `Expected a model as \`provider:model\`, such as \`anthropic:claude-sonnet-5\`, got \`${ref}\`.`,
    )
  }
  if (!isProviderName(provider)) {
    const named = provider === 'gemini' ? ' Use `google:…`.' : undefined
    const other = OTHER_PROVIDERS.has(provider) ? OF_OTHER_PROVIDERS : named
    const known = PROVIDER_NAMES.map((name) => `\`${name}\``).join(', ')
    throw new HarnessError(
      'invalid_options',
      `Unknown provider \`${provider}\` in the model \`${ref}\`.${other ?? didYouMean(provider, PROVIDER_NAMES)} Known: ${known}.`,
    )
  }
  const at = provider === 'local' ? id.indexOf('@http') : -1
  return at < 1 ? { provider, id, baseUrl: null } : { provider, id: id.slice(0, at), baseUrl: id.slice(at + 1) }
}

function isProviderName(name: string): name is ProviderName {
  return (PROVIDER_NAMES as readonly string[]).includes(name)
}
