import { HarnessError } from '#contracts/errors.js'
import type { PendingItem } from '#contracts/result.js'
import type { RunParent, RunState } from '../state/state.js'
import { decide, hasOtherRuns } from './decide.js'

/** The items that people have not answered; empty unless the run waits. */
export function pendingOf(state: RunState): readonly PendingItem[] {
  if (state.phase.at !== 'batch' && !hasOtherRuns(state)) return []
  const command = decide(state)
  return command.kind === 'wait' ? command.items : []
}

/** The rejection of a child run: it continues with its call. */
export function belowAnother(runId: string, parent: RunParent): HarnessError {
  const message = `Run \`${runId}\` was started by a call of run \`${parent.runId}\`, and continues only with that one.`
  return new HarnessError('invalid_state', message)
}
