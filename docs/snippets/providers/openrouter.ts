import { Harness } from 'thinharness'
import { openrouter } from 'thinharness/providers'

const model = openrouter('moonshotai/kimi-k3', {
  extraBody: { provider: { sort: 'throughput' } },
  baseUrl: process.env['OPENROUTER_BASE_URL'] ?? 'https://openrouter.ai/api/v1',
})
await using harness = new Harness({ model, builtinTools: [] })
console.log((await harness.run('Name three rivers in Kenya.')).text)
