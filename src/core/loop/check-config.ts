import { HarnessError } from '#contracts/errors.js'
import { compareConfig } from '../state/config-digest.js'
import type { ConfigPolicy } from '../state/config-digest.js'
import type { RunSetup } from './run-plan.js'
import type { BatchCall } from '../state/batch-call.js'
import type { RunState } from '../state/state.js'
import { hasFlows } from '#contracts/flows.js'

/**
 * Refuses to continue with a configuration that the policy forbids, and with a tool that no longer needs the approval that its
 * call waits for. A call that needs an approval and has none is shown to a person again.
 */
export function checkConfig(state: RunState, { config, tools }: RunSetup, policy: ConfigPolicy): void {
  const open = state.phase.at === 'batch' ? state.phase.calls.filter(({ settled }) => settled === null) : []
  if (state.config !== null && policy !== 'any') {
    const change = compareConfig(
      state.config,
      config,
      open.map(({ name }) => name),
    )
    const refused = change.kind === 'breaking' || (change.kind === 'compatible' && policy === 'same')
    if (refused) throw changed(state.runId, change.kind, change.differences)
  }
  const free = open.find((call) => tools.get(call.name)?.requiresApproval === false && isHeldByTool(call))
  if (free !== undefined) throw needlessApproval(free)
}

/** The call waits for an approval that its tool asked for, not a policy. */
function isHeldByTool({ callId, entries, waiting }: BatchCall): boolean {
  const item = waiting.find((each) => each.kind === 'approval' && each.callId === callId)
  return entries === 0 && item !== undefined && item.decision === undefined && !hasFlows(item)
}

function changed(runId: string, kind: string, differences: readonly string[]): HarnessError {
  const message = `Run \`${runId}\` cannot continue: its configuration has changed (${kind}: ${differences.join(', ')}). Pass the old configuration, or \`configPolicy\`.`
  return new HarnessError('invalid_state', message)
}

function needlessApproval({ callId, name }: BatchCall): HarnessError {
  const message = `Call \`${callId}\` of \`${name}\` waits for an approval that it does not need: the state or the tool was changed.`
  return new HarnessError('invalid_state', message)
}
