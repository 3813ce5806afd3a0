import { defineTool } from 'thinharness'
import { z } from 'zod'

export const refund = defineTool({
  name: 'refund',
  description: 'Refund an order, in full or in part.',
  parameters: z.object({ orderId: z.string(), cents: z.number().int().positive() }),
  requiresApproval: ({ cents }) => cents > 1000,
  handler: ({ orderId, cents }) => `Refunded ${cents} cents of order ${orderId}.`,
})
