import { Harness } from 'thinharness'
import { anthropic } from 'thinharness/providers'

const model = anthropic('claude-sonnet-5', { promptCache: { ttl: '1h' }, maxOutputTokens: 8192 })
await using harness = new Harness({ model, root: './notes' })

const { text, usage } = await harness.run('What was decided in the last meeting?')
console.log(text)
console.log(`${usage.cacheReadTokens} of ${usage.inputTokens} input tokens came from the cache`)
