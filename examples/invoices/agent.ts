import { defineTool, Harness } from 'thinharness'
import type { LogStore, ToolSpec } from 'thinharness'
import { z } from 'zod'
import type { Bank } from './bank.js'

const PAYMENT = z.object({
  invoice: z.string().describe('Its number.'),
  to: z.string().describe('The account of the supplier.'),
  cents: z.number().int().positive(),
})
const DESCRIPTION = 'Pay an invoice.'

/** Safe in a crash: the call has a key, and whoever goes on after a crash asks the bank what happened. */
function payTool(bank: Bank): ToolSpec {
  return defineTool({
    name: 'pay_invoice',
    description: DESCRIPTION,
    parameters: PAYMENT,
    // The key is the same for every attempt at this call: the bank makes one payment of it.
    handler: (payment, { idempotencyKey }) => bank.pay(payment, idempotencyKey),
    async reconcile(idempotencyKey) {
      const receipt = await bank.find(idempotencyKey)
      return receipt === null ? { outcome: 'did_not_happen' } : { outcome: 'happened', result: receipt }
    },
    // If the bank does not answer, a person decides.
    onUnknownOutcome: 'pause',
  })
}

/** What one must not do: without a key, and again after a crash, whatever had happened. */
function carelessPayTool(bank: Bank): ToolSpec {
  return defineTool({
    name: 'pay_invoice',
    description: DESCRIPTION,
    parameters: PAYMENT,
    handler: (payment) => bank.pay(payment, null),
    onUnknownOutcome: 'retry',
  })
}

interface PayingOptions {
  readonly bank: Bank
  readonly log: LogStore
  readonly isCareless: boolean
}

/** Reads an invoice, and pays it. */
export function payingAgent({ bank, log, isCareless }: PayingOptions): Harness {
  return new Harness({
    log,
    root: 'invoices',
    builtinTools: ['read'],
    tools: [isCareless ? carelessPayTool(bank) : payTool(bank)],
    instructions: 'You pay invoices. Read the invoice, pay exactly what it says, and answer with the receipt.',
    limits: { modelRequests: 8 },
  })
}
