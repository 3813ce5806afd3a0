import { defineTool, fileLog, Harness } from 'thinharness'
import { z } from 'zod'

const refund = defineTool({
  name: 'refund',
  description: 'Pay money back for an order.',
  parameters: z.object({ order: z.string(), dollars: z.number() }),
  requiresApproval: ({ dollars }) => dollars > 10,
  handler: ({ order, dollars }) => `Paid ${dollars} dollars for ${order}.`,
})

const agent = new Harness({
  model: 'anthropic:claude-sonnet-5',
  tools: [refund],
  limits: { costUsd: 0.1 },
  log: fileLog('runs'),
})

const prompt = 'Order 7 arrived broken. Pay 9 dollars back.'
const result = await agent.run(prompt)
console.log(result.text)
