import { HarnessError } from 'thinharness'
import type { Harness } from 'thinharness'

/** The answer; null if the caller went away, or if it took longer than a minute. */
export async function answerInTime(harness: Harness, prompt: string, caller: AbortSignal): Promise<string | null> {
  const signal = AbortSignal.any([caller, AbortSignal.timeout(60_000)])
  try {
    return (await harness.run(prompt, { signal })).text
  } catch (error) {
    if (error instanceof HarnessError && error.code === 'cancelled') return null
    throw error
  }
}
