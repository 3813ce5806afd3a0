import { defineTool } from 'thinharness'
import type { ToolSpec } from 'thinharness'
import { z } from 'zod'

interface Bank {
  transfer(order: { cents: number; to: string; idempotencyKey: string }): Promise<string>
  /** The receipt of an order that was carried out. */
  find(idempotencyKey: string): Promise<string | undefined>
}

export function transferTool(bank: Bank): ToolSpec {
  return defineTool({
    name: 'transfer',
    description: 'Transfer money to somebody.',
    parameters: z.object({ cents: z.number().int().positive(), to: z.string() }),
    requiresApproval: true,
    // The key is the same for every attempt at this call: the bank carries it out once.
    handler: (order, { idempotencyKey }) => bank.transfer({ ...order, idempotencyKey }),
    // Asked when a process ended under the call, in place of guessing.
    reconcile: async (idempotencyKey) => {
      const receipt = await bank.find(idempotencyKey)
      return receipt === undefined ? { outcome: 'did_not_happen' } : { outcome: 'happened', result: receipt }
    },
    // When the bank cannot be asked either, a person decides.
    onUnknownOutcome: 'pause',
  })
}
