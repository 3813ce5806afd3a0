import { Harness, HarnessError } from 'thinharness'
import type { HarnessOptions, HarnessResult } from 'thinharness'

/** Works on a run for at most `ms`: its result, or null if it goes on in the next function with the same `runId`. */
export async function slice(
  options: HarnessOptions,
  { runId, prompt, ms = 45_000 }: { readonly runId: string; readonly prompt: string; readonly ms?: number },
): Promise<HarnessResult | null> {
  await using harness = new Harness(options)
  const timer = setTimeout(() => void harness.close({ timeoutMs: 5_000 }), ms)
  try {
    return await harness.run(prompt, { runId, ifExists: 'continue' })
  } catch (error) {
    if (error instanceof HarnessError && error.code === 'interrupted') return null
    throw error
  } finally {
    clearTimeout(timer)
  }
}
