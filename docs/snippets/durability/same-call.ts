import { fileLog, Harness } from 'thinharness'
import type { HarnessOptions, HarnessResult } from 'thinharness'

export async function payInvoice({ model, tools }: HarnessOptions): Promise<HarnessResult> {
  await using harness = new Harness({ model, tools, log: fileLog('runs') })
  return await harness.run('Pay invoice 17.', { runId: 'invoice-17', ifExists: 'continue' })
}
