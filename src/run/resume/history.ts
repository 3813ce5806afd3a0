import { HarnessError } from '../../contracts/errors.js'
import { toolCallsOf } from '../../contracts/entry.js'
import type { TranscriptEntry } from '../../contracts/entry.js'
import type { ResumeState } from '../../contracts/result.js'
import { isObject, parseJson } from '../../util/json.js'
import type { OpenHistory } from '../core/plan.js'
import { parseAs } from '../../util/shape.js'
import type { SigningKey } from '../core/signature.js'
import type { RunLog } from '../log/log.js'
import { conversationOf } from '../machine/closing.js'
import { upToStep } from '../machine/history.js'
import type { Conversation } from '../machine/history.js'
import { entryId } from '../machine/state.js'
import type { RunState } from '../machine/state.js'
import { foldLog } from './read-log.js'
import { isSameState } from './state-digest.js'
import { rememberConversation } from './recent-conversations.js'
import { readState, waitingFor } from './stored-state.js'
import type { StoredState } from './stored-state.js'
import { transcriptShape } from './transcript-shape.js'

/** An earlier run in the same log, up to and including the step of one of its entries. */
export interface HistoryReference {
  readonly runId: string
  /** Id of an entry: the entry and the results of its tool calls are the last ones taken. Default: all of the run. */
  readonly after?: string | undefined
}

/** The conversation that a run continues: entries, the state of a run that has ended, or a run of the same log. */
export type History = readonly TranscriptEntry[] | ResumeState | HistoryReference

/** Finds a conversation for a run of the log. */
export type FindHistory = (log: RunLog) => Promise<OpenHistory>

/**
 * Reads a history. Throws `invalid_state` for anything else; a run that cannot be continued rejects when it is looked up. What
 * the log of the new run holds becomes a reference.
 */
export function readHistory(given: unknown, signingKey: SigningKey | null): FindHistory {
  if (Array.isArray(given)) {
    const found = inline({ entries: readEntries(given) })
    return () => Promise.resolve(found)
  }
  if (isReference(given)) {
    const { runId, after } = given
    if (after !== undefined && typeof after !== 'string') throw invalid('`after` must be the id of an entry.')
    return (log) => ofRun(log, { runId, after })
  }
  const stored = readState(given, 'history', signingKey)
  requireEnd(stored.state)
  return (log) => ofState(log, stored)
}

/** A conversation that no run of the log holds. */
export function inline({ entries, view }: Conversation): OpenHistory {
  return { start: { history: entries, ...(view && { view }) }, conversation: { entries, ...(view && { view }) } }
}

function isReference(given: unknown): given is { readonly runId: string; readonly after?: unknown } {
  if (!isObject(given) || typeof given['runId'] !== 'string') return false
  return Object.keys(given).every((key) => key === 'runId' || key === 'after')
}

function readEntries(given: readonly unknown[]): readonly TranscriptEntry[] {
  const parsed = parseJson(jsonOf(given))
  const entries: unknown = parsed.ok ? parsed.value : undefined
  const read = parseAs(transcriptShape, entries, 'the entries')
  if (!read.ok) throw invalid(read.problem)
  const numbered = read.value.map((entry, index) => ({ ...entry, id: entryId(index) }))
  const open = openCall(numbered)
  if (open !== undefined) throw invalid(`call \`${open}\` has no result, or is there twice.`)
  return numbered
}

function jsonOf(given: readonly unknown[]): string {
  try {
    return JSON.stringify(given)
  } catch {
    throw invalid('it is not plain JSON.')
  }
}

/** A call that does not have exactly one result after it. */
function openCall(entries: readonly TranscriptEntry[]): string | undefined {
  const open = new Set<string>()
  const closed = new Set<string>()
  for (const entry of entries) {
    if (entry.role === 'assistant') {
      for (const { callId } of toolCallsOf(entry.parts)) {
        if (open.has(callId) || closed.has(callId)) return callId
        open.add(callId)
      }
    } else if (entry.role === 'tool') {
      if (!open.delete(entry.callId)) return entry.callId
      closed.add(entry.callId)
    }
  }
  return open.values().next().value
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
  if (conversation === null) throw invalid(`run \`${runId}\` has no entry \`${after}\`.`)
  if (conversation.entries.length > state.transcript.length) requireEnd(state)
  return referring(log, state, conversation)
}

/** If the log has the run, its content counts, and the state must be the one that the log holds. */
async function ofState(log: RunLog, stored: StoredState): Promise<OpenHistory> {
  const { runId, seq } = stored.state
  const known = await foldLog(log, runId, { upTo: seq })
  if (known === null) return inline(conversationOf(stored.state))
  if (!isSameState(stored, known.state))
    throw invalid(`the state of run \`${runId}\` is not the one that the log holds: it was changed.`)
  return referring(log, known.state, conversationOf(known.state))
}

function referring(log: RunLog, { runId, seq }: RunState, conversation: Conversation): OpenHistory {
  const last = conversation.entries.at(-1)
  if (last === undefined) return inline(conversation)
  const history = { runId, seq, entryId: last.id }
  rememberConversation(log, history, conversation)
  return { start: { history }, conversation }
}

function requireEnd(state: RunState): void {
  if (state.phase.at !== 'ended') throw invalid(`run \`${state.runId}\` ${waitingFor(state)}.`)
}

function invalid(problem: string): HarnessError {
  return new HarnessError('invalid_state', `history: ${problem}`)
}
