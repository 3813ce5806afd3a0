import { HarnessError } from '#contracts/errors.js'
import type { OpenHistory } from '#core/loop/run-plan.js'
import type { RunLog } from '#core/log/log.js'
import { conversationOf } from '#core/state/closing.js'
import { upToStep } from '#core/state/history.js'
import type { Conversation } from '#core/state/history.js'
import type { RunState } from '#core/state/state.js'
import { invalidHistory, requireEnd } from './parse-history.js'
import type { GivenHistory, HistoryReference } from './parse-history.js'
import { foldLog, rememberConversation } from './read-log.js'
import { isSameState } from './state-digest.js'
import type { StoredState } from './stored-state.js'

/** Finds the conversation of a history. A conversation that the log holds becomes a reference. */
export async function findHistory(given: GivenHistory, log: RunLog): Promise<OpenHistory> {
  if (given.kind === 'entries') return inline(given)
  return given.kind === 'run' ? ofRun(log, given) : ofState(log, given.stored)
}

/** A conversation that no run of the log holds. */
export function inline({ entries, view }: Conversation): OpenHistory {
  return { start: { history: entries, ...(view && { view }) }, conversation: { entries, ...(view && { view }) } }
}

async function ofRun(log: RunLog, { runId, after }: HistoryReference): Promise<OpenHistory> {
  const found = await foldLog(log, runId)
  if (found === null) throw new HarnessError('run_not_found', `history: the log has no run \`${runId}\`.`)
  const { state } = found
  if (after === undefined) {
    requireEnd(state)
    return referring(log, state, conversationOf(state))
  }
  const conversation = upToStep(conversationOf(state), after)
  if (conversation === null) throw invalidHistory(`run \`${runId}\` has no entry \`${after}\`.`)
  if (conversation.entries.length > state.transcript.length) requireEnd(state)
  return referring(log, state, conversation)
}

/** If the log has the run, its content counts, and the state must be the one that the log holds. */
async function ofState(log: RunLog, stored: StoredState): Promise<OpenHistory> {
  const { runId, seq } = stored.state
  const known = await foldLog(log, runId, { upTo: seq })
  if (known === null) return inline(conversationOf(stored.state))
  if (!isSameState(stored, known.state))
    throw invalidHistory(`the state of run \`${runId}\` is not the one that the log holds: it was changed.`)
  return referring(log, known.state, conversationOf(known.state))
}

function referring(log: RunLog, { runId, seq }: RunState, conversation: Conversation): OpenHistory {
  const last = conversation.entries.at(-1)
  if (last === undefined) return inline(conversation)
  const history = { runId, seq, entryId: last.id }
  rememberConversation(log, history, conversation)
  return { start: { history }, conversation }
}
