import { HarnessError } from '../../contracts/errors.js'
import { compareConfig } from '../machine/config-digest.js'
import type { ConfigPolicy } from '../machine/config-digest.js'
import type { Frozen } from '../core/frozen.js'
import type { BatchCall } from '../machine/batch-call.js'
import type { RunState } from '../machine/state.js'

/** Refuses to go on with a configuration that the policy forbids, and with one that asks otherwise for approval. */
export function checkConfig(state: RunState, { config, tools }: Frozen, policy: ConfigPolicy): void {
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
  const held = open.some(({ waiting }) => waiting.some(({ kind }) => kind === 'approval'))
  if (!held) return
  // A tampered state could else free a call of the approval that it needs.
  for (const call of open) {
    const required = tools.get(call.name)?.requiresApproval
    if (typeof required === 'function' || required === undefined) continue
    if (call.entries === 0 && required !== asksApproval(call) && !asksAboutContent(call))
      throw asksOtherwise(call, required)
  }
}

function asksApproval({ callId, waiting }: BatchCall): boolean {
  return waiting.some((item) => item.kind === 'approval' && item.callId === callId)
}

/** The rules of provenance had a person asked. */
function asksAboutContent({ waiting }: BatchCall): boolean {
  return waiting.some(({ provenance }) => provenance !== undefined)
}

function changed(runId: string, kind: string, differences: readonly string[]): HarnessError {
  const message = `Run \`${runId}\` cannot go on: its configuration has changed (${kind}: ${differences.join(', ')}). Give it the old one, or \`configPolicy\`.`
  return new HarnessError('invalid_state', message)
}

function asksOtherwise({ callId, name }: BatchCall, required: boolean): HarnessError {
  const what = required ? 'needs an approval that was not asked for' : 'was held for an approval that it does not need'
  return new HarnessError(
    'invalid_state',
    `Call \`${callId}\` of \`${name}\` ${what}: the state or the tool was changed.`,
  )
}
