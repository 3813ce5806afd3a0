import { defineTool } from 'thinharness'
import { z } from 'zod'

export const fileTicket = defineTool({
  name: 'file_ticket',
  description: 'File a ticket of a customer.',
  parameters: z.object({ text: z.string() }),
  async handler({ text }, { decide }) {
    const { choice } = await decide({
      question: 'Which team answers this ticket?',
      choices: ['billing', 'delivery', 'other'],
      context: text,
      model: 'anthropic:claude-haiku-4-5',
    })
    return `Filed for ${choice}.`
  },
})
