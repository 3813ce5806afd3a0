import { Harness } from 'thinharness'
import { openrouter } from 'thinharness/providers'

const model = openrouter('moonshotai/kimi-k3', { extraBody: { provider: { sort: 'throughput' } } })
await using harness = new Harness({ model })
console.log((await harness.run('Name three rivers in Kenya.')).text)
