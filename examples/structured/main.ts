// Structured output with a custom tool: the answer is validated and typed.
//   npm run example -- structured
import { defineTool, Harness } from 'thinharness'
import { z } from 'zod'

const orders = new Map([['1042', { carrier: 'Borealis', promised: '2026-11-18', delivered: null }]])

const lookupOrder = defineTool({
  name: 'lookup_order',
  description: 'Find one order by its id.',
  parameters: z.object({ id: z.string().regex(/^\d+$/) }),
  annotations: { readOnly: true },
  handler: ({ id }) => orders.get(id) ?? `There is no order ${id}.`,
})

const Verdict = z.object({
  late: z.boolean(),
  days: z.number().int().nonnegative().describe('Days after the promised date; 0 if on time.'),
  letter: z.string().max(300).describe('The letter to the customer.'),
})

await using harness = new Harness({ tools: [lookupOrder], outputType: Verdict })
const { output, usage } = await harness.run('Is order 1042 late? Today is 2026-11-21.')

// `output` has the type of `Verdict`. Invalid answers are sent back to the model, up to `outputRetries` times.
console.log(output.late ? `${output.days} days late` : 'on time')
console.log(output.letter)
console.log(`${usage.modelRequests} requests`)
