import type { ModelRef, ProviderName } from '#contracts/model-reference.js'
import type { ModelCapabilities } from '#core/model-session.js'
import { knownPrices } from '#run/money/known-prices.js'
import type { Price } from '#run/money/token-cost.js'
import { environment } from '#util/platform/node.js'
import { modelOf } from './candidate-model.js'

/** A model that a reference can name, as far as it is known. */
export interface CatalogueEntry {
  /** For the option `model`. */
  readonly ref: ModelRef
  readonly provider: string
  readonly id: string
  /** Tokens of input and output together; null: unknown. */
  readonly contextTokens: number | null
  /** The longest reply, in tokens; null: unknown. */
  readonly maxOutputTokens: number | null
  /** Kinds of input in addition to text; null: unknown. */
  readonly inputs: NonNullable<ModelCapabilities['inputs']> | null
  /** It thinks before it answers; null: unknown. */
  readonly reasoning: boolean | null
  /** US dollars for a million tokens; null: unknown. */
  readonly price: Price | null
  /** The environment has a key for its provider. */
  readonly hasKey: boolean
}

export interface CatalogueOptions {
  /** In place of the environment of the process. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
}

/** The variable with the key, and the ids that are models for conversations: the table of prices has other names, too. */
const PROVIDERS = {
  anthropic: { key: 'ANTHROPIC_API_KEY', ids: /^claude-[a-z]+-[4-9](?:-\d{1,2})?(?:-\d{8})?$/, not: /^$/ },
  openai: {
    key: 'OPENAI_API_KEY',
    ids: /^(?:gpt-\d|o\d|chatgpt-4o)/,
    not: /audio|realtime|transcribe|tts|image|instruct|search|vision|oss|[:-]$|:|^gpt-\d-\d(?!\d{3}-\d\d-)/,
  },
  google: { key: 'GEMINI_API_KEY', ids: /^gemini-[2-9]/, not: /embedding|tts|image|live|audio|[:-]$|:/ },
  openrouter: { key: 'OPENROUTER_API_KEY', ids: /^[\w.-]+\/[\w.-]+(?::free)?$/, not: /^$/ },
} as const satisfies Readonly<Record<Exclude<ProviderName, 'local'>, object>>

/**
 * The models with a known price that a reference can name: their windows, inputs, prices, and whether there is a key for them. For
 * lists from which a person chooses; other models can be used as well.
 * @example
 * for (const { ref, price, hasKey } of catalogue()) {
 *   if (hasKey) console.log(ref, price?.inputPerMillion)
 * }
 * const cheap = catalogue().filter(({ price }) => price !== null && price.outputPerMillion < 1)
 */
export function catalogue({ env }: CatalogueOptions = {}): readonly CatalogueEntry[] {
  const known = knownPrices()
  return Object.entries(PROVIDERS).flatMap(([provider, { key, ids, not }]) => {
    const hasKey = ((env === undefined ? environment(key) : env[key]) ?? '').trim() !== ''
    const { models = {}, answers = [] } = known[provider] ?? {}
    const listed = Object.entries(models).filter(([id]) => ids.test(id) && !not.test(id))
    return listed.map(([id, place]): CatalogueEntry => {
      const ref: ModelRef = `${provider}:${id}`
      const { capabilities } = modelOf(ref)
      const { price = null, window } = answers[place] ?? {}
      const efforts = capabilities.reasoningEfforts
      return {
        ...{ ref, provider, id, price, hasKey },
        contextTokens: capabilities.contextTokens ?? window ?? null,
        maxOutputTokens: capabilities.maxOutputTokens ?? null,
        inputs: capabilities.inputs ?? null,
        reasoning: efforts === undefined ? null : efforts.length > 0,
      }
    })
  })
}
