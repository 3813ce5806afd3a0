import { readFile } from 'node:fs/promises'
import { HarnessError } from '../index.js'
import type { DurableEvent, Harness, HarnessResult, ReplayOptions } from '../index.js'

/** The outcome of a replayed run: its result, or the error that the recorded run ended in. */
export type Replayed<Output> =
  | { readonly result: HarnessResult<Output>; readonly error: null }
  | { readonly result: null; readonly error: HarnessError }

/**
 * A recorded run as a test: runs it again from a file of its events, one JSON object a line, as `fileLog` writes it. No
 * model is asked and no tool is run. Rejects with `replay_mismatch`, which names the first difference, if the harness
 * would emit something else than was recorded; with `invalid_log` for a file that is not a log.
 *
 * @example
 * test('the refund run', async () => {
 *   const { result } = await replayTest('tests/runs/refund.jsonl', harness)
 *   expect(result?.text).toContain('refunded')
 * })
 */
export async function replayTest<Output>(
  file: string | URL,
  harness: Harness<Output>,
  options: ReplayOptions = {},
): Promise<Replayed<Output>> {
  const events = await eventsIn(file)
  try {
    return { result: await harness.replay(events, options), error: null }
  } catch (error) {
    const last = events.at(-1)
    const isRecorded = error instanceof HarnessError && last?.kind === 'run_failed' && last.code === error.code
    if (!isRecorded || error.message !== last.message) throw error
    return { result: null, error }
  }
}

async function eventsIn(file: string | URL): Promise<readonly DurableEvent[]> {
  const text = await readFile(file, 'utf8')
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return lines.map((line, index) => {
    try {
      return JSON.parse(line) as DurableEvent
    } catch (cause) {
      throw new HarnessError(
        'invalid_log',
        `Line ${index + 1} of \`${String(file)}\` is not an event: it is not JSON.`,
        {
          cause,
        },
      )
    }
  })
}
