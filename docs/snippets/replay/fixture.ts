import type { Harness } from 'thinharness'
import { replayTest } from 'thinharness/testing'

export async function checkRefundRun(harness: Harness): Promise<void> {
  const { result } = await replayTest('tests/runs/refund.jsonl', harness)
  if (result?.text.includes('refunded') !== true) throw new Error('Expected the answer to mention the refund.')
}
