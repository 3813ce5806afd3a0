import { readFile, writeFile } from 'node:fs/promises'
import type { Answer, Harness, HarnessResult, ResumeState } from 'thinharness'

/** When a run pauses: what waits is shown to somebody, the state is put away. */
export async function putAway({ runId, pending, resumeState }: HarnessResult): Promise<void> {
  await writeFile(`${runId}.json`, JSON.stringify({ pending, resumeState }))
}

/** Later, perhaps in another process: some answers are there. Those that are missing leave the run waiting. */
export async function goOn(harness: Harness, runId: string, answers: readonly Answer[]): Promise<HarnessResult> {
  const { resumeState } = JSON.parse(await readFile(`${runId}.json`, 'utf8')) as { resumeState: ResumeState }
  const result = await harness.resume(resumeState, answers)
  if (result.pending.length > 0) await putAway(result)
  return result
}
