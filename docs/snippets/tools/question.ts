import { defineTool } from 'thinharness'
import { z } from 'zod'

export const chooseSlot = defineTool({
  name: 'choose_slot',
  description: 'Let the customer choose a delivery day.',
  parameters: z.object({ days: z.array(z.string()).min(1) }),
  async handler({ days }, context) {
    const { day } = await context.ask({ days }, z.object({ day: z.enum(days) }))
    return `The customer chose ${day}.`
  },
})
