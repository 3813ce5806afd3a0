import { Harness } from 'thinharness'
import { openai } from 'thinharness/providers'

/** For all runs of the harness, whatever their model. */
export const harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  settings: { temperature: 0, maxOutputTokens: 4_000 },
})

/** For one run: a model with options of its own. */
export async function thinkHard(prompt: string): Promise<string> {
  const model = openai('gpt-5.5', { reasoningEffort: 'high', maxOutputTokens: 32_000 })
  const thinking = new Harness({ model })
  return (await thinking.run(prompt)).text
}
