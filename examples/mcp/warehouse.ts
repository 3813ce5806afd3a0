import { defineTool } from 'thinharness'
import { z } from 'zod'

const STOCK = new Map([
  ['oolong', 12],
  ['assam', 0],
])

/** A tool of the served harness. Clients may also call it directly, without a model. */
export const warehouse = defineTool({
  name: 'stock',
  description: 'How many tins of a tea are in stock.',
  parameters: z.object({ tea: z.string() }),
  annotations: { readOnly: true },
  handler: ({ tea }) => {
    // Over stdio this goes to standard error: standard output belongs to the protocol.
    console.log(`Stock request for ${tea}.`)
    return `${STOCK.get(tea.toLowerCase()) ?? 'No such tea; not'} in stock.`
  },
})
