import { Harness } from 'thinharness'
import { byComplexity, route } from 'thinharness/models'

/** Summaries of long conversations are written by a cheaper model. */
const byPurpose = route({ main: 'anthropic:claude-sonnet-5', summarise: 'anthropic:claude-haiku-5' })

/** Short questions go to a cheap model, long ones to a premium one. */
const byLength = route(
  { cheap: 'openai:gpt-5.5-mini', standard: 'openai:gpt-5.5', premium: 'openai:gpt-5.5-pro' },
  byComplexity({ cheapTokens: 200, premiumTokens: 1_500 }),
)

export const harnesses = [byPurpose, byLength].map((model) => new Harness({ model }))
