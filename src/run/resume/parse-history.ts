import { HarnessError } from '#contracts/errors.js'
import { entryId, toolCallsOf } from '#contracts/entry.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import type { ResumeState } from '#contracts/result.js'
import { openedHistory } from '#contracts/trusted.js'
import type { Trusted } from '#contracts/trusted.js'
import { isObject, parseJson } from '#util/json.js'
import { parseAs } from '#util/validate.js'
import type { SigningKey } from '#core/loop/signature.js'
import type { RunState } from '#core/state/state.js'
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
export type History = OpenHistory | Trusted<OpenHistory>

type OpenHistory = readonly TranscriptEntry[] | ResumeState | HistoryReference

/** A history that was checked as far as that is possible without the log. */
export type GivenHistory =
  | { readonly kind: 'entries'; readonly entries: readonly TranscriptEntry[] }
  | { readonly kind: 'run'; readonly runId: string; readonly after: string | undefined }
  | { readonly kind: 'state'; readonly stored: StoredState }

/** A copy of a history. Throws `invalid_state` for anything else, and for the state of a run that has not ended. */
export function parseHistory(value: History, signingKey: SigningKey | null): GivenHistory {
  const opened = openedHistory<OpenHistory>(value)
  const given: unknown = opened.history
  const key = opened.isTrusted ? null : signingKey
  const isUnsigned = Array.isArray(given) ? given.length > 0 : isReference(given)
  if (key !== null && isUnsigned) throw invalidHistory(UNSIGNED)
  if (Array.isArray(given)) return { kind: 'entries', entries: readEntries(given) }
  if (isReference(given)) {
    const { runId, after } = given
    if (after !== undefined && typeof after !== 'string') throw invalidHistory('`after` must be the id of an entry.')
    return { kind: 'run', runId, after }
  }
  const stored = readState(given, 'history', key)
  requireEnd(stored.state)
  return { kind: 'state', stored }
}

const UNSIGNED =
  'with a `signingKey`, a conversation is taken as a signed state; pass entries, and the id of a run, as `trusted(…)` if they are your own.'

function isReference(given: unknown): given is { readonly runId: string; readonly after?: unknown } {
  if (!isObject(given) || typeof given['runId'] !== 'string') return false
  return Object.keys(given).every((key) => key === 'runId' || key === 'after')
}

function readEntries(given: readonly unknown[]): readonly TranscriptEntry[] {
  const parsed = parseJson(jsonOf(given))
  const entries: unknown = parsed.ok ? parsed.value : undefined
  const read = parseAs(transcriptShape, entries, 'the entries')
  if (!read.ok) throw invalidHistory(read.problem)
  const numbered = read.value.map((entry, index) => ({ ...entry, id: entryId(index) }))
  const open = openCall(numbered)
  if (open !== undefined)
    throw invalidHistory(open === '' ? 'a call has no id.' : `call \`${open}\` has no result, or is there twice.`)
  return numbered
}

function jsonOf(given: readonly unknown[]): string {
  try {
    return JSON.stringify(given)
  } catch {
    throw invalidHistory('it is not plain JSON.')
  }
}

/** A call without an id, or that does not have exactly one result after it. */
function openCall(entries: readonly TranscriptEntry[]): string | undefined {
  const open = new Set<string>()
  const closed = new Set<string>()
  for (const entry of entries) {
    if (entry.role === 'assistant') {
      for (const { callId } of toolCallsOf(entry.parts)) {
        if (callId === '' || open.has(callId) || closed.has(callId)) return callId
        open.add(callId)
      }
    } else if (entry.role === 'tool') {
      if (!open.delete(entry.callId)) return entry.callId
      closed.add(entry.callId)
    }
  }
  return open.values().next().value
}

/** Throws `invalid_state` for a run that has not ended. */
export function requireEnd(state: RunState): void {
  if (state.phase.at !== 'ended') throw invalidHistory(`run \`${state.runId}\` ${waitingFor(state)}.`)
}

export function invalidHistory(problem: string): HarnessError {
  return new HarnessError('invalid_state', `history: ${problem}`)
}
