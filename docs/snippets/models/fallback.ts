import { Harness } from 'thinharness'
import { fallback } from 'thinharness/models'
import { anthropic, openai } from 'thinharness/providers'

const model = fallback([
  anthropic('claude-sonnet-5'),
  { model: openai('gpt-5.5'), settings: { reasoningEffort: 'low' } },
  'openrouter:meta-llama/llama-4-maverick',
])
export const harness = new Harness({ model })
