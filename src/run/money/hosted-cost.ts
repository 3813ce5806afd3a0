import type { ToolDefinition } from '#core/model-session.js'
import type { TokenUsage } from '#contracts/entry.js'
import { costOf } from './token-cost.js'
import type { Price } from './token-cost.js'
import { pricedAs } from './find-price.js'

type PerCall = Readonly<Record<string, number>>

/**
 * List prices of hosted calls in US dollars, by provider as the table of prices names it; a tool that is not named is free. An
 * image is counted at the highest price, the time of a container as its shortest, and OpenRouter's search with five results.
 */
const LISTED: Readonly<Record<string, PerCall>> = {
  anthropic: { web_search: 0.01, code_execution: 0.0042 },
  openai: { web_search: 0.01, file_search: 0.0025, code_execution: 0.03, image_generation: 0.25 },
  google: { web_search: 0.035 },
  openrouter: { web_search: 0.02, web_fetch: 0.005 },
  'x-ai': { web_search: 0.005, code_execution: 0.005 },
}
const ANY: PerCall = {
  web_search: 0.035,
  web_fetch: 0.005,
  file_search: 0.0025,
  code_execution: 0.03,
  image_generation: 0.25,
}

/** What hosted calls cost, in micro-dollars. */
export function hostedCost(price: Price, provider: string, calls: TokenUsage['hostedCalls'] = {}): number {
  const listed = LISTED[pricedAs(provider)] ?? ANY
  const dollars = (tool: string): number => price.hostedPerCall?.[tool] ?? listed[tool] ?? 0
  return Object.entries(calls).reduce((sum, [tool, count]) => sum + count * Math.ceil(dollars(tool) * MICRO), 0)
}

const MICRO = 1_000_000

/** Cost of a reply, as `costOf`, with the calls that its provider executed. */
export function costOfReply(
  { price, provider }: { readonly price: Price; readonly provider: string },
  usage: TokenUsage,
  batch = false,
): number | null {
  const cost = costOf(price, usage, batch)
  return cost === null || usage.hostedCalls === undefined ? cost : cost + hostedCost(price, provider, usage.hostedCalls)
}

/** Calls in one reply of a hosted tool that names no `maxUses`. */
const USES = 8
/** Tokens that the model reads of one result: an estimate, since no provider bounds them. */
const READ_PER_USE = 4000

/**
 * What the hosted tools of a request can cost beside its tokens, in micro-dollars, and the tokens of their results. OpenAI bounds
 * the calls of all tools together, so any of them may be the dearest.
 */
export function hostedBound(
  tools: readonly ToolDefinition[],
  { provider, price }: { readonly provider: string; readonly price: Price },
): { readonly cost: number; readonly tokens: number } {
  const costs: number[] = []
  let [uses, sum, tokens] = [0, 0, 0]
  for (const { hosted } of tools) {
    if (hosted === undefined) continue
    const { maxUses, maxContentTokens } = hosted.config
    const most = typeof maxUses === 'number' ? maxUses : USES
    const each = hostedCost(price, provider, { [hosted.kind]: 1 })
    costs.push(each)
    uses += most
    sum += most * each
    tokens += most * (typeof maxContentTokens === 'number' ? maxContentTokens : READ_PER_USE)
  }
  return { cost: provider === 'openai' ? uses * Math.max(0, ...costs) : sum, tokens }
}
