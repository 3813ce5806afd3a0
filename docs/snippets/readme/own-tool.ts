import { Harness } from 'thinharness'
import { z } from 'zod'
import { lookupOrder } from './lookup-order.js'

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  tools: [lookupOrder],
  outputType: z.object({ late: z.boolean(), reason: z.string() }),
})

const { output } = await harness.run('Is order 1042 late? Today is 2026-11-20.')
console.log(output.late ? `Late: ${output.reason}` : 'On time.')
