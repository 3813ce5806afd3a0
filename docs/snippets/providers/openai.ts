import { Harness } from 'thinharness'
import { openai } from 'thinharness/providers'

const model = openai('gpt-5.5', { reasoningEffort: 'high', timeouts: { totalMs: 600_000 } })
await using harness = new Harness({ model })

const { text, usage } = await harness.run('Prove that there are infinitely many primes, in three sentences.')
console.log(text)
console.log(`${usage.reasoningTokens} reasoning tokens`)
