import { HarnessError } from '../../contracts/errors.js'
import type { RunContext } from '../core/context.js'
import { loadRun } from '../core/load.js'
import { belowAnother } from './stored-state.js'

/**
 * Ends a run that is paused or was interrupted, from its log: no tool runs, and no request is sent. False when it has ended
 * already. Rejects with `run_not_found`, and with `run_owned` while another process executes it.
 */
export async function cancelStored(context: RunContext): Promise<boolean> {
  const { runId, log } = context
  try {
    await context.claim(false)
    const found = await loadRun(log, runId)
    if (found === null) throw new HarnessError('run_not_found', `The log has no run \`${runId}\`.`)
    const { state, responses } = found
    if (state.parent !== null) throw belowAnother(runId, state.parent)
    if (state.phase.at === 'ended') return false
    context.adopt(state, responses, null)
    const { code, name: errorType, message } = new HarnessError('cancelled', 'The run was cancelled.')
    await context.emit('run_failed', { stopReason: 'cancelled', code, errorType, message, usage: state.usage })
    return true
  } finally {
    context.abort.release()
    await context.release()
  }
}
