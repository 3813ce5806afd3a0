import { Harness } from 'thinharness'
import { openai } from 'thinharness/providers'

const thinking = openai('gpt-5.5', { reasoningEffort: 'high', timeouts: { totalMs: 300_000 }, maxRetries: 4 })
await using harness = new Harness({ model: thinking })

const plan = await harness.run('Plan a week of vegetarian dinners.')
const list = await harness.run(`Make a shopping list of it:\n${plan.text}`, { model: 'local:qwen3' })
console.log(list.text)
