import type { Answer, PendingItem } from 'thinharness'
import type { DbosRuns } from 'thinharness/durable/dbos'

/** Shows pending items to people and returns their answers. */
type Ask = (pending: readonly PendingItem[]) => Promise<readonly Answer[]>

/** Runs a prompt to its answer, in however many processes. */
export async function tidyUp(runs: DbosRuns, ask: Ask): Promise<string> {
  let run = await runs.start('Sort the notes into folders by subject.', { metadata: { user: 'u1' } })
  let result = await run.result()
  while (result.pending.length > 0) {
    run = await runs.answer(run.runId, await ask(result.pending))
    result = await run.result()
  }
  return result.text
}
