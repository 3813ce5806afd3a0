import { HarnessError } from 'thinharness'
import type { Harness } from 'thinharness'

/** The answer, or a sentence for the person who asked. */
export async function answer(harness: Harness, prompt: string, runId: string): Promise<string> {
  try {
    return (await harness.run(prompt, { runId, ifExists: 'continue' })).text
  } catch (error) {
    if (!(error instanceof HarnessError)) throw error
    switch (error.code) {
      case 'provider_error':
        return error.retryable ? 'The model is busy. Please try again later.' : `The model failed: ${error.message}`
      case 'limit_reached':
        return `I had to stop after ${error.run?.usage.modelRequests ?? 0} requests.`
      case 'cancelled':
        return 'Cancelled.'
      default:
        throw error
    }
  }
}
