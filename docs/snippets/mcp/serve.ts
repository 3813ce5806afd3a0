import { Harness } from 'thinharness'
import { serveMcp } from 'thinharness/mcp'

await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './orders' })
await using serving = await serveMcp(harness, {
  transport: { port: 8765, token: process.env['ORDERS_TOKEN'] ?? '' },
  description: 'Answers questions about our orders.',
})

console.log(`Serving at ${serving.url ?? 'stdio'}`)
await new Promise((resolve) => process.once('SIGINT', resolve))
