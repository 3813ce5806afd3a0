import { defineTool } from 'thinharness'
import { z } from 'zod'

const orders = new Map([['1042', 'in transit, promised for 2026-11-18']])

export const lookupOrder = defineTool({
  name: 'lookup_order',
  description: 'Find one order by its id.',
  parameters: z.object({ id: z.string().describe('Digits only, such as 1042.') }),
  annotations: { readOnly: true },
  handler: ({ id }) => orders.get(id) ?? `There is no order ${id}.`,
})
