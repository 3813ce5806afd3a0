import { defineTool } from 'thinharness'
import { z } from 'zod'
import { bank } from '../readme/bank.js'

export const pay = defineTool({
  name: 'pay',
  description: 'Pay an invoice.',
  parameters: z.object({ cents: z.number().int() }),
  handler: ({ cents }, { idempotencyKey: key }) => bank.pay(cents, key),
  // After a crash in the middle of the call: did it happen?
  async reconcile(key) {
    const receipt = await bank.find(key)
    if (receipt === undefined) return { outcome: 'did_not_happen' }
    return { outcome: 'happened', result: receipt }
  },
})
