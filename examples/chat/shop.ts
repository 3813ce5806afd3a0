import { setTimeout as sleep } from 'node:timers/promises'
import { defineTool, Harness } from 'thinharness'
import { askUser, submitPlan, tasks } from 'thinharness/session'
import { z } from 'zod'

const lookUp = defineTool({
  name: 'look_up_order',
  description: 'Look an order up.',
  parameters: z.object({ order: z.string() }),
  annotations: { readOnly: true },
  handler: async ({ order }, { progress, signal }) => {
    for (const step of ['Asking the warehouse', 'Asking the carrier']) {
      progress({ text: step })
      await sleep(300, undefined, { signal })
    }
    return { order, status: 'arrived broken', cents: 6450 }
  },
})

const refund = defineTool({
  name: 'refund',
  description: 'Refund an order, in full or in part.',
  parameters: z.object({ order: z.string(), cents: z.number().int().positive() }),
  requiresApproval: true,
  handler: ({ order, cents }) => `Refunded ${(cents / 100).toFixed(2)} euros of order ${order}.`,
})

const mail = defineTool({
  name: 'mail_customer',
  description: 'Send the customer of an order a mail.',
  parameters: z.object({ order: z.string(), text: z.string() }),
  handler: async ({ order }, { signal }) => {
    await sleep(300, undefined, { signal })
    return `The customer of order ${order} has been written to.`
  },
})

/** The modes of the chat: one that answers, and one that carries a plan out. */
export function shop(): { readonly chat: Harness; readonly build: Harness } {
  const shared = {
    builtinTools: [],
    instructions: 'You help the staff of a small shop with its orders.',
    use: [tasks()],
  }
  return {
    chat: new Harness({ ...shared, tools: [lookUp, refund, askUser(), submitPlan({ then: 'build' })] }),
    build: new Harness({ ...shared, tools: [lookUp, refund, mail] }),
  }
}
