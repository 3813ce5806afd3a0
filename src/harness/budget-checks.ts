import type { Limits, StallOptions } from '../contracts/limits.js'
import type { Price, Rates } from '../money/price.js'
import type { Prices } from '../money/prices.js'
import {
  anything,
  checkLimits,
  checkOptions,
  dollars,
  invalid,
  listOf,
  nameOf,
  oneOf,
  wholeNumber,
} from './option-checks.js'
import type { RunOptions } from './options.js'
import type { RunLimits, StallRules } from '../run/machine/rules.js'

/** What holds a run up, and how. */
export interface Budgets {
  readonly limits: RunLimits
  readonly onLimit: 'fail' | 'answer'
  readonly stall: StallRules | null
}

const DEFAULTS: Budgets = {
  limits: {
    modelRequests: 64,
    toolCalls: null,
    inputTokens: null,
    outputTokens: null,
    timeMs: null,
    costUsd: null,
  },
  onLimit: 'fail',
  stall: null,
}

/** The budgets that were given, checked: a copy of their own. What is left out is `defaults`'. */
export function ownBudgets(
  { limits = {}, onLimit, stall }: Pick<RunOptions, 'limits' | 'onLimit' | 'stall'>,
  defaults = DEFAULTS,
): Budgets {
  checkLimits(limits)
  return {
    limits: { ...defaults.limits, ...stated(limits) },
    onLimit: oneOf('onLimit', onLimit ?? defaults.onLimit, ['fail', 'answer']),
    stall: stall === undefined ? defaults.stall : stallRules(stall),
  }
}

function stated(limits: Limits): Partial<RunLimits> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined))
}

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
const MORE_RATES = [
  'cacheReadPerMillion',
  'cacheWritePerMillion',
  'longCacheWritePerMillion',
  'reasoningPerMillion',
] as const

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
function stallRules(stall: boolean | StallOptions): StallRules | null {
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
