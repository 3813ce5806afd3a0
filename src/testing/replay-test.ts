import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { HarnessError } from '#contracts/errors.js'
import type { DurableEvent } from '#core/state/events.js'
import type { Harness } from '#harness/harness.js'
import type { HarnessResult } from '#contracts/result.js'
import type { ReplayOptions } from '#harness/options.js'
import type { RunLog } from '#core/log/log.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import { parseJson } from '#util/json.js'

/** The outcome of a replayed run: its result, or the error that the recorded run ended in; and the differences that were allowed. */
export type Replayed<Output> =
  | { readonly result: HarnessResult<Output>; readonly error: null; readonly differences: readonly string[] }
  | { readonly result: null; readonly error: HarnessError; readonly differences: readonly string[] }

export interface ReplayTestOptions<Deps = unknown> extends Omit<ReplayOptions<Deps>, 'onDifference'> {
  /**
   * Records the run again before it is replayed: the recorded prompt is sent to the model of the harness, tools run, and the new
   * events replace the file. The file stays as it is if the run fails, pauses, or cannot be replayed. Default false.
   */
  readonly record?: boolean | undefined
}

/**
 * A recorded run as a test: runs it again from a file of its events, one JSON object a line, as `fileLog` writes it. No
 * model is asked and no tool is run. Rejects with `replay_mismatch`, which names the first difference, if the harness
 * would emit something else than was recorded; with `invalid_log` for a file that is not a log. Differences that `allow`
 * accepts are in `differences`.
 *
 * @example
 * test('the refund run', async () => {
 *   const { result } = await replayTest('tests/runs/refund.jsonl', harness)
 *   expect(result?.text).toContain('refunded')
 * })
 */
export async function replayTest<Output, Deps>(
  file: string | URL,
  harness: Harness<Output, Deps>,
  { record = false, ...options }: ReplayTestOptions<Deps> = {},
): Promise<Replayed<Output>> {
  const recorded = await readEvents(file)
  if (!record) return replayEvents(recorded, harness, options)
  const events = await recordedAgain(recorded, harness, options)
  const outcome = await replayEvents(events, harness, options)
  // A reader sees the old recording or the new one, never a part.
  const temporary = `${file instanceof URL ? fileURLToPath(file) : file}.${globalThis.crypto.randomUUID()}.tmp`
  try {
    await writeFile(temporary, events.map((event) => `${JSON.stringify(event)}\n`).join(''), { flag: 'wx' })
    await rename(temporary, file)
  } finally {
    await rm(temporary, { force: true })
  }
  return outcome
}

async function replayEvents<Output, Deps>(
  events: readonly DurableEvent[],
  harness: Harness<Output, Deps>,
  options: ReplayOptions<Deps>,
): Promise<Replayed<Output>> {
  const differences: string[] = []
  try {
    const onDifference = (difference: string): void => void differences.push(difference)
    return { result: await harness.replay(events, { ...options, onDifference }), error: null, differences }
  } catch (error) {
    const last = events.at(-1)
    const isRecorded = error instanceof HarnessError && last?.kind === 'run_failed' && last.code === error.code
    if (!isRecorded || error.message !== last.message) throw error
    return { result: null, error, differences }
  }
}

/** The events of a new run with the same prompt, history and metadata. A run that failed may fail again in the same way. */
async function recordedAgain<Output, Deps>(
  [started, ...rest]: readonly DurableEvent[],
  harness: Harness<Output, Deps>,
  { tools, instructions, use }: ReplayOptions<Deps>,
): Promise<readonly DurableEvent[]> {
  if (started?.kind !== 'run_started' || started.begun !== 'fresh' || started.prompt === null) {
    throw new HarnessError(
      'invalid_log',
      'Expected a recording that begins with a prompt; only such a run can be recorded again.',
    )
  }
  if (!Array.isArray(started.history)) {
    throw new HarnessError(
      'invalid_log',
      'The run refers to an earlier run of its log, so it cannot be recorded again.',
    )
  }
  const { runId, prompt, metadata } = started
  const history = started.history as readonly TranscriptEntry[]
  const events: DurableEvent[] = []
  const options = { log: logInto(events, runId), runId, metadata, tools, instructions, use, history }
  const last = rest.at(-1)
  try {
    const { status } = await harness.run(prompt, options)
    if (status === 'paused') {
      throw new HarnessError('invalid_state', 'The new run paused for an answer: the recording was not changed.')
    }
  } catch (error) {
    const isExpected = error instanceof HarnessError && last?.kind === 'run_failed' && last.code === error.code
    if (!isExpected) throw error
  }
  return events
}

/** A log that keeps the events of one run. */
function logInto(kept: DurableEvent[], runId: string): RunLog {
  return {
    append({ id }, events) {
      if (id === runId) kept.push(...events)
      return Promise.resolve()
    },
    async *read({ id }, { after = 0 } = {}) {
      for (const event of kept) if (id === runId && event.seq > after) yield event
    },
  }
}

async function readEvents(file: string | URL): Promise<readonly DurableEvent[]> {
  const text = await readFile(file, 'utf8')
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return lines.map((line, index) => {
    const parsed = parseJson(line)
    if (parsed.ok) return parsed.value as unknown as DurableEvent
    throw new HarnessError('invalid_log', `Line ${index + 1} of \`${String(file)}\` is not an event: it is not JSON.`)
  })
}
