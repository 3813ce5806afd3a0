import { defineTool, Harness } from 'thinharness'
import type { ResumeState } from 'thinharness'
import { z } from 'zod'

const refund = defineTool({
  name: 'refund',
  description: 'Refund an order, in full or in part.',
  parameters: z.object({ orderId: z.string(), cents: z.number().int().positive() }),
  requiresApproval: ({ cents }) => cents > 1000,
  handler: ({ orderId, cents }) => `Refunded ${cents} cents of order ${orderId}.`,
})

await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', tools: [refund] })
let result = await harness.run('Order 1042 arrived broken. It cost 64.50 euros. Please refund it.')

while (result.stopReason === 'approval_required') {
  const stored = JSON.stringify(result.resumeState)
  const answers = result.pending.map(({ callId, toolName, arguments: args }) => {
    console.log(`${toolName} ${args}: approved`)
    return { callId, approved: true }
  })
  result = await harness.resume(JSON.parse(stored) as ResumeState, answers)
}
console.log(result.text)
