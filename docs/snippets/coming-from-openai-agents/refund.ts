import { defineTool, fileLog, Harness } from 'thinharness'
import { z } from 'zod'

const refund = defineTool({
  name: 'refund',
  description: 'Refund an order.',
  parameters: z.object({ orderId: z.string() }),
  requiresApproval: true,
  handler: ({ orderId }) => `Order ${orderId} is refunded.`,
})

const harness = new Harness({
  model: 'openai:gpt-5.5',
  instructions: 'You help customers.',
  tools: [refund],
  log: fileLog('runs'),
})

let result = await harness.run('Refund order 7.', { runId: 'refund-7' })
while (result.status === 'paused') {
  const answers = result.pending.map(({ callId }) => ({ callId, approved: true }))
  result = await harness.resume('refund-7', answers)
}
console.log(result.text)
