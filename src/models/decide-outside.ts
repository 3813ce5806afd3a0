import type { Decided, Question } from '#contracts/decision.js'
import { HarnessError } from '#contracts/errors.js'
import type { ModelRef } from '#contracts/model-reference.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import type { Model } from '#core/model-session.js'
import { choose } from '#run/decide-in-run.js'
import { budget, moneyOf } from '#run/money/budget.js'
import type { Budget } from '#run/money/budget.js'
import { openSpending } from '#run/money/open-spending.js'
import { costOfAnswer } from '#run/money/answer-cost.js'
import { priceOf } from '#run/money/find-price.js'
import type { Prices } from '#run/money/find-price.js'
import { RequestAttempts } from '#run/money/request-attempts.js'
import type { JsonInput } from '#util/json.js'
import { abortSignal, anything, list, object, optional, string } from '#util/validate.js'
import { modelOf } from './candidate-model.js'

export interface DecideOptions<Choice extends string> extends Omit<Question<Choice>, 'model'> {
  /** Pays for the answer: what it may cost is reserved first. Default: nothing is limited. */
  readonly budget?: Budget | undefined
  /** Prices of one's own. Default: the known ones. */
  readonly prices?: Prices | undefined
  /** Default: none. */
  readonly signal?: AbortSignal | undefined
}

const OPTIONS = object<DecideOptions<string>>({
  question: string,
  choices: list(string),
  context: optional(anything<JsonInput>()),
  budget: optional(budget),
  prices: optional(anything<Prices>()),
  signal: optional(abortSignal),
})

/** As `decide`: what it needs is loaded with this module. */
export async function decideOutside<Choice extends string>(
  model: ModelRef | Model,
  options: DecideOptions<Choice>,
): Promise<Decided<Choice>> {
  parse(OPTIONS, options, '`decide`')
  const asked = modelOf(model)
  if (asked.computed === true) throw invalidOptions('Expected `decide` to get a model that is asked, got a program.')
  const { prices = {}, signal = new AbortController().signal } = options
  signal.throwIfAborted()
  const spending =
    options.budget === undefined
      ? null
      : await openSpending({ model: asked, prices, limitUsd: null, spentUsd: 0, outer: moneyOf(options.budget), stop })
  const price = priceOf(asked, prices).then(
    (known) => (turn: Parameters<typeof costOfAnswer>[0]) => costOfAnswer(turn, { model: asked, price: known, prices }),
    () => null,
  )
  const payer = new RequestAttempts({ model: asked, spending, price })
  const runId = `decide_${globalThis.crypto.randomUUID()}`
  const run = { runId, agentName: null, metadata: {}, labels: {}, purpose: 'decide' }
  return choose(options, { model: asked, run, payer, at: new Date().toISOString(), signal })
}

/** Amounts in US dollars. */
function stop({ limit, needed }: { readonly limit: number; readonly needed: number }): HarnessError {
  const message = `The budget of $${limit} has not enough left for \`decide\`: it could come to $${needed}.`
  return new HarnessError('limit_reached', message)
}
