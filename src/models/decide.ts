import type { Decided } from '#contracts/decision.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { Model } from '#core/model-session.js'
import type { DecideOptions } from './decide-outside.js'

/**
 * Has a model choose one of a few answers, in a closed form and with little output: outside of runs. Inside one it is
 * `context.decide(…)` of tools and hooks, which counts for the run.
 * @throws HarnessError `invalid_options` for fewer than two choices, `unexpected_model_behavior` for an answer that is none of them,
 * `limit_reached` if `budget` has not enough left, `provider_error` if the model does not answer.
 * @example
 * const question = 'Is this a complaint?'
 * const { choice, costUsd } = await decide('openai:gpt-5.5-mini', { question, choices: ['yes', 'no'], context: { mail } })
 * if (choice === 'yes') await escalate(mail)
 */
export async function decide<const Choice extends string>(
  model: ModelRef | Model,
  options: DecideOptions<Choice>,
): Promise<Decided<Choice>> {
  const { decideOutside } = await import('./decide-outside.js')
  return decideOutside(model, options)
}
