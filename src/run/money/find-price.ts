import type { Price } from './token-cost.js'

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
  return givenPrice({ provider, id }, models) ?? (await knownPrice(provider, id, now)) ?? unknown ?? null
}

/** The price that the host has given for a model. */
export function givenPrice({ provider, id }: PricedModel, models: Readonly<Record<string, Price>>): Price | undefined {
  return own(models, `${provider}:${id}`) ?? own(models, id)
}

function own(models: Readonly<Record<string, Price>>, name: string): Price | undefined {
  return Object.hasOwn(models, name) ? models[name] : undefined
}

/** Servers of one's own: the table has no price for them. */
const WITHOUT_LIST_PRICE: ReadonlySet<string> = new Set(['local', 'openai-compatible'])

async function knownPrice(provider: string, id: string, timestamp: Date): Promise<Price | null> {
  if (WITHOUT_LIST_PRICE.has(provider)) return null
  const minute = Math.floor(timestamp.getTime() / 60_000)
  const name = `${provider}:${id}`
  const known = lookedUp.get(name)
  if (known?.minute === minute) return known.price
  const price = tablePrice(provider, id, timestamp)
  if (lookedUp.size >= MOST_LOOKED_UP) lookedUp.clear()
  lookedUp.set(name, { minute, price })
  try {
    return await price
  } catch (error) {
    if (lookedUp.get(name)?.price === price) lookedUp.delete(name)
    throw error
  }
}

/**
 * The latest lookups, by model: each run asks, and runs that begin together share one lookup. Prices that depend on the time of day change
 * at whole minutes.
 */
const lookedUp = new Map<string, { readonly minute: number; readonly price: Promise<Price | null> }>()
const MOST_LOOKED_UP = 100

async function tablePrice(provider: string, id: string, timestamp: Date): Promise<Price | null> {
  const { listed } = await import('./price-table.js')
  const { price, window } = await listed(pricedAs(provider), id, timestamp)
  if (window !== undefined) windows.set(`${provider}:${id}`, window)
  return price
}

/** The windows of models whose prices were looked up, in tokens. */
const windows = new Map<string, number>()

/** The window of a model, in tokens, if the table of prices has it and was asked for the price; otherwise null. */
export function knownWindow({ provider, id }: PricedModel): number | null {
  return windows.get(`${provider}:${id}`) ?? null
}

/** A provider as the table names it. Those of the AI SDK are named `ai-sdk:` and their own name, such as `openai.responses`. */
export function pricedAs(provider: string): string {
  const [name = ''] = provider.replace(/^ai-sdk:/, '').split('.')
  return OTHER_NAMES.get(name) ?? name
}

const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['openai-chat', 'openai'],
  ['amazon-bedrock', 'aws'],
  ['xai', 'x-ai'],
])
