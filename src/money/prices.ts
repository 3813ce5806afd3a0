import type { ModelPrice, TieredPrices } from '@pydantic/genai-prices'
import type { Price, PriceTier, Rates } from './price.js'

/** The prices of models. Others come from `@pydantic/genai-prices`. */
export interface Prices {
  /** By model, as `provider:model` or `model` alone; instead of known prices. */
  readonly models?: Readonly<Record<string, Price>> | undefined
  /** The price of models without a known price. Default: none. */
  readonly unknown?: Price | undefined
}

/** A model, as it is named in events. */
export interface PricedModel {
  readonly provider: string
  readonly id: string
}

/** The price of a model at `now`; null when none is known. Loads the table of prices if it is needed. */
export async function priceOf(
  { provider, id }: PricedModel,
  { models = {}, unknown }: Prices = {},
  now = new Date(),
): Promise<Price | null> {
  const given = own(models, `${provider}:${id}`) ?? own(models, id)
  return given ?? (await knownPrice(provider, id, now)) ?? unknown ?? null
}

function own(models: Readonly<Record<string, Price>>, name: string): Price | undefined {
  return Object.hasOwn(models, name) ? models[name] : undefined
}

/** Servers of one's own: the table, which takes 40 ms of CPU to load, has no price for them. */
const WITHOUT_LIST_PRICE: ReadonlySet<string> = new Set(['local', 'openai-compatible'])

async function knownPrice(provider: string, id: string, timestamp: Date): Promise<Price | null> {
  if (WITHOUT_LIST_PRICE.has(provider)) return null
  const minute = Math.floor(timestamp.getTime() / 60_000)
  const name = `${provider}:${id}`
  const known = lookedUp.get(name)
  if (known?.minute === minute) return known.price
  const price = await tablePrice(provider, id, timestamp)
  if (lookedUp.size >= MOST_LOOKED_UP) lookedUp.clear()
  lookedUp.set(name, { minute, price })
  return price
}

/** The latest lookups, by model: each run asks. Prices that depend on the time of day change at whole minutes. */
const lookedUp = new Map<string, { readonly minute: number; readonly price: Price | null }>()
const MOST_LOOKED_UP = 100

async function tablePrice(provider: string, id: string, timestamp: Date): Promise<Price | null> {
  const { calcPrice } = await import('@pydantic/genai-prices')
  const providerId = pricedAs(provider)
  const found = calcPrice({ input_tokens: 1, output_tokens: 1 }, id, { providerId, timestamp })
  // The table also finds providers by a part of their name: a compatible server is not OpenAI.
  if (found?.provider.id !== providerId) return null
  const { context_window: window } = found.model
  if (window !== undefined) windows.set(`${provider}:${id}`, window)
  return priceFrom(found.model_price)
}

/** The windows of models whose prices were looked up, in tokens. */
const windows = new Map<string, number>()

/** The window of a model, in tokens, if the table of prices has it and was asked for the price; otherwise null. */
export function knownWindow({ provider, id }: PricedModel): number | null {
  return windows.get(`${provider}:${id}`) ?? null
}

/** A provider as the table names it. Those of the AI SDK are named `ai-sdk:` and their own name, such as `openai.responses`. */
function pricedAs(provider: string): string {
  const [name = ''] = provider.replace(/^ai-sdk:/, '').split('.')
  return OTHER_NAMES.get(name) ?? name
}

const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['openai-chat', 'openai'],
  ['amazon-bedrock', 'aws'],
  ['xai', 'x-ai'],
])

const FIELDS = {
  inputPerMillion: 'input_mtok',
  outputPerMillion: 'output_mtok',
  cacheReadPerMillion: 'cache_read_mtok',
  cacheWritePerMillion: 'cache_write_mtok',
  longCacheWritePerMillion: 'cache_write_1h_mtok',
  reasoningPerMillion: 'output_reasoning_mtok',
} as const satisfies Record<keyof Rates, string>

/** A price of the table in our form; null if it has none for text. */
function priceFrom(table: ModelPrice): Price | null {
  const base = ratesIn(table, (price) => (typeof price === 'number' ? price : price.base))
  if (base === null) return null
  const starts = Object.values(FIELDS).flatMap((field) => {
    const price = table[field]
    return typeof price === 'object' ? price.tiers.map(({ start }) => start) : []
  })
  const tiers = [...new Set(starts)]
    .sort((a, b) => a - b)
    .flatMap((aboveInputTokens): PriceTier[] => {
      const rates = ratesIn(table, (price) => priceAbove(price, aboveInputTokens))
      return rates === null ? [] : [{ ...rates, aboveInputTokens }]
    })
  return tiers.length === 0 ? base : { ...base, tiers }
}

function ratesIn(table: ModelPrice, rateOf: (price: number | TieredPrices) => number): Rates | null {
  const rates = Object.entries(FIELDS).flatMap(([name, field]) => {
    const price = table[field]
    return price === undefined ? [] : [[name, rateOf(price)] as const]
  })
  const found = Object.fromEntries(rates) as Partial<Rates>
  const { inputPerMillion, outputPerMillion } = found
  if (inputPerMillion === undefined || outputPerMillion === undefined) return null
  return { ...found, inputPerMillion, outputPerMillion }
}

function priceAbove(price: number | TieredPrices, inputTokens: number): number {
  if (typeof price === 'number') return price
  const reached = price.tiers.filter(({ start }) => start <= inputTokens)
  return reached.reduce((highest, tier) => (tier.start > highest.start ? tier : highest), {
    start: -1,
    price: price.base,
  }).price
}
