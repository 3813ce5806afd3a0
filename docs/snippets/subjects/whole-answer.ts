import { randomUUID } from 'node:crypto'
import { HarnessError, textOf } from 'thinharness'
import type { Harness } from 'thinharness'

/** An answer that may be longer than one reply: the model continues where it was cut off, at most `pieces` times. */
export async function wholeAnswer(harness: Harness, prompt: string, pieces = 5): Promise<string> {
  const runId = `run_${randomUUID()}`
  let run = harness.run(prompt, { runId })
  for (;;) {
    try {
      const { transcript } = await run
      return transcript.map((entry) => (entry.role === 'assistant' ? textOf(entry.parts) : '')).join('')
    } catch (error) {
      const last = error instanceof HarnessError ? error.run?.transcript.at(-1) : undefined
      const isCut = last?.role === 'assistant' && last.finishReason === 'length'
      pieces -= 1
      if (!isCut || pieces === 0) throw error
      run = harness.retry(runId)
    }
  }
}
