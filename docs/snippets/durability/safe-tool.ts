import { defineTool } from 'thinharness'
import type { ToolSpec } from 'thinharness'
import { z } from 'zod'

interface Bank {
  transfer(order: { cents: number; to: string; idempotencyKey: string }): Promise<string>
  /** The receipt of a completed transfer; undefined if there was none. */
  find(idempotencyKey: string): Promise<string | undefined>
}

export function transferTool(bank: Bank): ToolSpec {
  return defineTool({
    name: 'transfer',
    description: 'Transfer money to a recipient.',
    parameters: z.object({ cents: z.number().int().positive(), to: z.string() }),
    requiresApproval: true,
    // The key is the same for every attempt at this call, so the bank executes it once.
    handler: (order, { idempotencyKey }) => bank.transfer({ ...order, idempotencyKey }),
    // Called after a crash during the call, to find out what happened.
    reconcile: async (idempotencyKey) => {
      const receipt = await bank.find(idempotencyKey)
      return receipt === undefined ? { outcome: 'did_not_happen' } : { outcome: 'happened', result: receipt }
    },
    // If the bank cannot be reached, a person decides.
    onUnknownOutcome: 'pause',
  })
}
