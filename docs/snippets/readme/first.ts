import { defineTool, Harness } from 'thinharness'
import { z } from 'zod'

const lookupOrder = defineTool({
  name: 'lookup_order',
  description: 'Find one order by its id.',
  parameters: z.object({ id: z.string() }),
  handler: ({ id }) => (id === '1042' ? 'in transit, promised for 2026-11-18' : `There is no order ${id}.`),
})

const harness = new Harness({ model: 'anthropic:claude-sonnet-5', tools: [lookupOrder] })
const result = await harness.run('Is order 1042 late? Today is 2026-11-20.')
console.log(result.text)
console.log(`${result.usage.modelRequests} requests, ${result.usage.toolCalls} tool call`)
