import { Harness } from 'thinharness'

await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './notes' })
const result = await harness.run('Which notes mention a deadline? Write them to deadlines.md, soonest first.')

console.log(result.text)
console.log(`${result.usage.modelRequests} requests, ${result.usage.toolCalls} tool calls`)
