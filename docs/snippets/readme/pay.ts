import { defineTool, fileLog, Harness } from 'thinharness'
import { z } from 'zod'
import { bank } from './bank.js'

const pay = defineTool({
  name: 'pay',
  description: 'Pay an invoice.',
  parameters: z.object({ invoice: z.string(), cents: z.number().int().positive() }),
  async handler({ cents }, { idempotencyKey }) {
    const receipt = await bank.pay(cents, idempotencyKey)
    if (process.argv.includes('--crash')) process.kill(process.pid, 'SIGKILL') // paid, and nobody knows yet
    return receipt
  },
  // Called after a crash in the middle of the call: did it happen?
  async reconcile(idempotencyKey) {
    const receipt = await bank.find(idempotencyKey)
    return receipt === undefined ? { outcome: 'did_not_happen' } : { outcome: 'happened', result: receipt }
  },
})

const harness = new Harness({ model: 'anthropic:claude-sonnet-5', tools: [pay], log: fileLog('runs') })
const result = await harness.run('Pay invoice 17: 64.50 euros.', { runId: 'invoice-17', ifExists: 'continue' })
console.log(result.text)
