import { Budget, defineTool } from 'thinharness'
import type { Harness } from 'thinharness'
import { policy } from 'thinharness/policy'
import { z } from 'zod'

export interface User {
  readonly id: string
  readonly role: 'admin' | 'member'
  readonly spentUsd: number
}

const listOrders = defineTool({
  name: 'list_orders',
  description: 'List the orders of the customer.',
  parameters: z.object({}),
  // The owner comes from the run, never from the model.
  handler: (_args, { metadata: { resourceId } }) =>
    `Orders of ${typeof resourceId === 'string' ? resourceId : 'nobody'}: none.`,
})
const deleteOrder = defineTool({
  name: 'delete_order',
  description: 'Delete an order.',
  parameters: z.object({ id: z.string() }),
  handler: ({ id }) => `Deleted ${id}.`,
})

export const tools = [listOrders, deleteOrder]

/** One harness for all users: owner, rules, instructions and money belong to the run. */
export async function ask(harness: Harness, user: User, prompt: string): Promise<string> {
  const rules = user.role === 'admin' ? [] : [{ decision: 'deny', tool: 'delete_order', note: 'For admins.' } as const]
  const { text } = await harness.run(prompt, {
    metadata: { resourceId: user.id },
    labels: { tenant: user.id },
    use: [policy(rules)],
    budget: new Budget({ costUsd: 10, spentUsd: user.spentUsd }),
  })
  return text
}
