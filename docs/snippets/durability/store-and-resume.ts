import { readFile, writeFile } from 'node:fs/promises'
import type { Answer, Harness, HarnessResult, ResumeState } from 'thinharness'

/** When a run pauses: store the state, and the pending items to show to a person. */
export async function savePausedRun({ runId, pending, resumeState }: HarnessResult): Promise<void> {
  await writeFile(`${runId}.json`, JSON.stringify({ pending, resumeState }))
}

/** Later, perhaps in another process: resume with the answers so far. The run keeps waiting for the others. */
export async function resumeRun(harness: Harness, runId: string, answers: readonly Answer[]): Promise<HarnessResult> {
  const { resumeState } = JSON.parse(await readFile(`${runId}.json`, 'utf8')) as { resumeState: ResumeState }
  const result = await harness.resume(resumeState, answers)
  if (result.pending.length > 0) await savePausedRun(result)
  return result
}
