import { defineTool, fileLog, Harness } from 'thinharness'
import { z } from 'zod'

const findOrder = defineTool({
  name: 'find_order',
  description: 'Find an order by its number.',
  parameters: z.object({ number: z.string() }),
  handler: ({ number }) => (number === '1043' ? 'delivered twice, 20 dollars' : `There is no order ${number}.`),
})

const refund = defineTool({
  name: 'refund',
  description: 'Pay money back for an order.',
  parameters: z.object({ number: z.string(), dollars: z.number().positive() }),
  requiresApproval: true,
  handler: ({ number, dollars }) => `Refunded ${dollars} dollars for order ${number}.`,
})

export default new Harness({
  model: 'anthropic:claude-sonnet-5',
  instructions: 'You help with the orders of a shop.',
  tools: [findOrder, refund],
  limits: { costUsd: 0.5 },
  log: fileLog('.thinharness/runs'),
})
