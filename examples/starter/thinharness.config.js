// The agent: `npx thinharness run "Where is order 1042?"` uses this file.
import { z } from 'zod'
import { defineTool } from 'thinharness'
import { demo } from './demo.js'

const ORDERS = {
  1042: { status: 'shipped', carrier: 'Borealis', total: 58 },
  1043: { status: 'delivered twice', carrier: 'Kestrel', total: 20 },
}

const findOrder = defineTool({
  name: 'find_order',
  description: 'Finds an order by its number.',
  parameters: z.object({ number: z.string() }),
  handler: ({ number }) => ORDERS[number] ?? `There is no order ${number}.`,
})

// Nobody pays without a person: the run waits for an answer, also over the end of the process.
const refund = defineTool({
  name: 'refund',
  description: 'Pays money back for an order.',
  parameters: z.object({ number: z.string(), amount: z.number() }),
  requiresApproval: true,
  handler: ({ number, amount }) => `Refunded ${amount} dollars for order ${number}.`,
})

export default {
  // Set ANTHROPIC_API_KEY and THINHARNESS_MODEL=anthropic:claude-sonnet-5 for a real model.
  model: process.env.THINHARNESS_MODEL ?? demo(),
  instructions: 'You help with the orders of a shop.',
  tools: [findOrder, refund],
}
