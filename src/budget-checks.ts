import type { Price, Rates } from './money/price.js'
import type { Prices } from './money/prices.js'
import { anything, checkOptions, dollars, invalid, listOf, nameOf, wholeNumber } from './option-checks.js'
import type { StallOptions } from './options.js'
import type { StallRules } from './run/rules.js'

/** The prices that were given, checked: a copy of their own. */
export function ownPrices(prices: Prices): Prices {
  checkOptions(prices, anything('models', 'unknown'), 'member of `prices`')
  const { models = {}, unknown } = prices
  const own = Object.entries(models).map(
    ([name, price]) => [name, ownPrice(price, `prices.models['${name}']`)] as const,
  )
  return {
    models: Object.fromEntries(own),
    ...(unknown !== undefined && { unknown: ownPrice(unknown, 'prices.unknown') }),
  }
}

const RATES = ['inputPerMillion', 'outputPerMillion'] as const
const MORE_RATES = ['cacheReadPerMillion', 'cacheWritePerMillion', 'reasoningPerMillion'] as const

function ownPrice(price: Price, name: string): Price {
  checkOptions(price, anything(...RATES, ...MORE_RATES, 'tiers'), `member of \`${name}\``)
  checkRates(price, name)
  const { tiers = [] } = price
  const isList: boolean = Array.isArray(tiers)
  if (!isList) throw invalid(`Expected \`${name}.tiers\` to be a list, got ${nameOf(tiers)}.`)
  for (const tier of tiers) {
    checkOptions(tier, anything(...RATES, ...MORE_RATES, 'aboveInputTokens'), `member of \`${name}.tiers\``)
    checkRates(tier, `${name}.tiers`)
    wholeNumber(`${name}.tiers.aboveInputTokens`, tier.aboveInputTokens)
  }
  return structuredClone(price)
}

function checkRates(rates: Rates, name: string): void {
  const given = MORE_RATES.filter((rate) => rates[rate] !== undefined)
  for (const rate of [...RATES, ...given]) dollars(`${name}.${rate}`, rates[rate])
}

const STEPS = { noticeAfter: 3, answerAfter: 5, stopAfter: 8 } as const

/** Null where turns without news are not counted. */
export function stallRules(stall: boolean | StallOptions): StallRules | null {
  if (stall === false) return null
  const options = stall === true ? {} : stall
  checkOptions(
    options,
    {
      ...anything('noticeAfter', 'answerAfter', 'stopAfter'),
      ignore: listOf('names', (name) => typeof name === 'string'),
    },
    'member of `stall`',
  )
  const step = (name: keyof typeof STEPS): number | null => {
    const value = options[name] === undefined ? STEPS[name] : options[name]
    return value === null ? null : wholeNumber(`stall.${name}`, value, 1)
  }
  return {
    noticeAfter: step('noticeAfter'),
    answerAfter: step('answerAfter'),
    stopAfter: step('stopAfter'),
    ignore: [...(options.ignore ?? [])],
  }
}
