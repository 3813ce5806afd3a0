import { HarnessError } from '../../contracts/errors.js'
import { toolCallsOf } from '../../contracts/entry.js'
import type { TranscriptEntry } from '../../contracts/entry.js'
import type { ResumeState } from '../../contracts/result.js'
import { isObject, parseJson } from '../../util/json.js'
import type { SigningKey } from '../core/signature.js'
import { loadRun } from '../core/load.js'
import type { RunLog } from '../log/log.js'
import { entryId } from '../machine/state.js'
import type { RunState } from '../machine/state.js'
import { readState, waitingFor } from './stored-state.js'
import { transcriptShape } from './stored-shape.js'

/** An earlier run in the same log, up to and including the step of one of its entries. */
export interface HistoryReference {
  readonly runId: string
  /** Id of an entry: the entry and the results of its tool calls are the last ones taken. Default: all of the run. */
  readonly after?: string | undefined
}

/** The conversation that a run continues: entries, the state of a run that has ended, or a run of the same log. */
export type History = readonly TranscriptEntry[] | ResumeState | HistoryReference

/** What is needed to read a `History`. */
export interface HistorySource {
  readonly log: RunLog
  readonly signingKey: SigningKey | null
}

/**
 * The entries of a history, or how to load them. Throws `invalid_state` for anything else; a run that cannot be continued
 * rejects when it is loaded.
 */
export function readHistory(
  given: unknown,
  { log, signingKey }: HistorySource,
): readonly TranscriptEntry[] | (() => Promise<readonly TranscriptEntry[]>) {
  if (Array.isArray(given)) return readEntries(given)
  if (isReference(given)) {
    const { runId, after } = given
    if (after !== undefined && typeof after !== 'string') throw invalid('`after` must be the id of an entry')
    return () => loadHistory(log, { runId, after })
  }
  const { state } = readState(given, 'history', signingKey)
  return endedTranscript(state)
}

function isReference(given: unknown): given is { readonly runId: string; readonly after?: unknown } {
  if (!isObject(given) || typeof given['runId'] !== 'string') return false
  return Object.keys(given).every((key) => key === 'runId' || key === 'after')
}

function readEntries(given: readonly unknown[]): readonly TranscriptEntry[] {
  const parsed = parseJson(jsonOf(given))
  const entries: unknown = parsed.ok ? parsed.value : undefined
  const problem = transcriptShape(entries, 'history')
  if (problem !== undefined) throw invalid(problem)
  const numbered = (entries as TranscriptEntry[]).map((entry, index) => ({ ...entry, id: entryId(index) }))
  const open = openCall(numbered)
  if (open !== undefined) throw invalid(`call \`${open}\` has no result, or is there twice`)
  return numbered
}

function jsonOf(given: readonly unknown[]): string {
  try {
    return JSON.stringify(given)
  } catch {
    throw invalid('it is not plain JSON')
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

async function loadHistory(log: RunLog, { runId, after }: HistoryReference): Promise<readonly TranscriptEntry[]> {
  const found = await loadRun(log, runId)
  if (found === null) throw new HarnessError('run_not_found', `history: the log has no run \`${runId}\`.`)
  const { state } = found
  if (after === undefined) return endedTranscript(state)
  const { transcript } = state
  const index = transcript.findIndex(({ id }) => id === after)
  if (index < 0) throw invalid(`run \`${runId}\` has no entry \`${after}\``)
  let end = index + 1
  while (transcript[end]?.role === 'tool') end += 1
  const entries = transcript.slice(0, end)
  if (openCall(entries) !== undefined) throw invalid(`run \`${runId}\` ${waitingFor(state)}`)
  return entries
}

function endedTranscript(state: RunState): readonly TranscriptEntry[] {
  if (state.phase.at === 'ended') return state.transcript
  throw invalid(`run \`${state.runId}\` ${waitingFor(state)}`)
}

function invalid(problem: string): HarnessError {
  return new HarnessError('invalid_state', `history: ${problem}.`)
}
