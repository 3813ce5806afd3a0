import { belowAnother, pendingOf } from '#core/loop/decide.js'
import { HarnessError } from '#contracts/errors.js'
import type { ResumeState } from '#contracts/result.js'
import { toolCallsOf } from '#contracts/entry.js'
import { canonicalJson, isObject, parseJson } from '#util/json.js'
import { shownValue } from '#util/mismatch.js'
import { parseAs } from '#util/validate.js'
import { checkSignature } from '#core/loop/signature.js'
import type { SigningKey } from '#core/loop/signature.js'
import { FORMAT_VERSION } from '#core/state/events.js'
import type { RunState } from '#core/state/state.js'
import { runStateShape } from './stored-shape.js'

/** A parsed stored state: the run's state, and the raw replies that were stored with it. */
export interface StoredState {
  readonly state: RunState
  readonly responses: readonly unknown[]
}

/**
 * Reads a stored state, strictly: a copy. Throws `invalid_state`, with a message that begins with `where`, for anything
 * else, another version, an impossible change, or a wrong signature.
 */
export function readState(given: unknown, where: string, key: SigningKey | null): StoredState {
  const stored = copyOf(given, where, key !== null)
  if (stored['kind'] !== 'run_state')
    throw invalidState(where, 'it is not a stored state of a run: `kind` is not `run_state`.')
  if (stored['version'] !== FORMAT_VERSION) throw invalidState(where, otherVersion(stored['version']))
  const parsed = parseAs(runStateShape, stored, 'the state')
  if (!parsed.ok) throw invalidState(where, parsed.problem)
  const { responses = [], signature, ...state } = parsed.value
  const problem = impossible(state)
  if (problem !== undefined) throw invalidState(where, problem)
  if (key !== null) checkSignature(stored as ResumeState, key)
  return { state, responses }
}

/** Why the conversation of a run that has not ended cannot be continued. */
export function waitingFor(state: RunState): string {
  return pendingOf(state).length > 0
    ? 'is waiting for answers: call `harness.resume` with them instead'
    : 'has not ended: call `harness.recover` instead'
}

/** The state of a run that waits for people, to continue with their answers. */
export function readPaused(given: unknown, key: SigningKey | null): StoredState {
  const stored = readState(given, 'resume', key)
  checkPaused(stored.state)
  return stored
}

/** Throws `invalid_state` for the state of a run that is not waiting for people. */
export function checkPaused(state: RunState): void {
  const { runId, phase, parent } = state
  if (parent !== null) throw belowAnother(runId, parent)
  if (pendingOf(state).length > 0) return
  const instead =
    phase.at === 'ended'
      ? 'has ended: pass it as `history` with a new prompt'
      : 'is not waiting for answers: call `harness.recover` instead'
  throw invalidState('resume', `run \`${runId}\` ${instead}.`)
}

function copyOf(given: unknown, where: string, isSigned: boolean): Record<string, unknown> {
  let text: string
  try {
    // What is signed is written by a function that goes less deep than the engine's own: what is too deep for it is refused here.
    text = isSigned ? canonicalJson(given) : JSON.stringify(given)
  } catch {
    throw invalidState(where, 'it is not plain JSON.')
  }
  const parsed = parseJson(text)
  if (parsed.ok && isObject(parsed.value)) return parsed.value
  throw invalidState(where, 'expected the `resumeState` of a result, an object.')
}

function otherVersion(version: unknown): string {
  const found = version === undefined ? 'no `version`' : `version ${shownValue(version)}`
  return `it has ${found}, and this package reads version ${FORMAT_VERSION}; run again to get a new one.`
}

/** The problem of a state that has the right shape but cannot come from a run. */
function impossible(state: RunState): string | undefined {
  const { transcript, firstEntry } = state
  const phase = state.phase.at === 'ended' ? state.phase.position : state.phase
  if (firstEntry >= transcript.length) return '`firstEntry` is after the end of the transcript.'
  const ids = transcript
    .flatMap((entry) => (entry.role === 'assistant' ? toolCallsOf(entry.parts) : []))
    .map(({ callId }) => callId)
  if (new Set(ids).size < ids.length) return 'a call id is in `transcript` twice.'
  if (phase?.at !== 'batch') return undefined
  const last = transcript.at(-1)
  const made = last?.role === 'assistant' ? toolCallsOf(last.parts) : []
  const same =
    made.length === phase.calls.length &&
    made.every(({ callId, name, arguments: text }, index) => {
      const call = phase.calls[index]
      if (call?.callId !== callId) return false
      return call.via === undefined ? call.name === name && call.arguments === text : call.via === name
    })
  if (!same) return 'the calls of `phase` are not those of the last reply.'
  const misplaced = phase.calls.find(({ callId, waiting }) =>
    waiting.some((item) => item.callId !== callId && !item.callId.startsWith(`${callId}/`)),
  )
  return misplaced === undefined
    ? undefined
    : `\`phase\` waits at call \`${misplaced.callId}\` for the answer to another.`
}

function invalidState(where: string, problem: string): HarnessError {
  return new HarnessError('invalid_state', `${where}: ${problem}`)
}
