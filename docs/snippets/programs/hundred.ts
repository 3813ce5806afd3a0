import { defineTool, Harness } from 'thinharness'
import { z } from 'zod'
import { program } from './program.js'

const checkInvoice = defineTool({
  name: 'check_invoice',
  description: 'Checks an invoice by its number.',
  parameters: z.object({ number: z.number() }),
  annotations: { readOnly: true },
  handler: ({ number }) => ({ number, isPaid: number % 3 !== 0 }),
})

const checkAll = defineTool({
  name: 'check_all',
  description: 'Checks the invoices from 1 to a number, and lists those that are not paid.',
  parameters: z.object({ last: z.number() }),
  onUnknownOutcome: 'retry',
  handler: async ({ last }, { spawn }) => {
    const model = program(async (call) => {
      const open: number[] = []
      const refused: number[] = []
      for (let number = 1; number <= last; number++) {
        try {
          const { isPaid } = z.object({ isPaid: z.boolean() }).parse(await call('check_invoice', { number }))
          if (!isPaid) open.push(number)
        } catch {
          refused.push(number)
        }
      }
      return { open: open.length, refused }
    })
    return (await spawn({ prompt: 'Check them all.', as: 'self', model }).result).text
  },
})

await using harness = new Harness({
  model: 'openai:gpt-5.5',
  tools: [checkInvoice, checkAll],
  hooks: [
    {
      event: 'before_tool_call',
      tools: ['check_invoice'],
      handler: ({ arguments: text }) => (text === '{"number":13}' ? { cancel: 'Invoice 13 is secret.' } : undefined),
    },
  ],
})

const { toolCallRecords, usage } = await harness.run('Which of our hundred invoices are open?')
console.log(toolCallRecords[0]?.output)
console.log(`${usage.modelRequests} requests, ${usage.toolCalls} calls, ${usage.scriptSteps ?? 0} steps`)
