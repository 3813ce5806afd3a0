import { Harness } from 'thinharness'
import { z } from 'zod'

const outputType = z.object({
  customer: z.string(),
  amount: z.number().describe('In euros.'),
  reason: z.enum(['late', 'broken', 'other']),
  note: z.string().optional(),
})

await using harness = new Harness({ model: 'openai:gpt-5.5', root: './notes', outputType })
const { output } = await harness.run('Which refund was requested last?')

console.log(`${output.customer}: ${output.amount.toFixed(2)} € (${output.reason})`)
