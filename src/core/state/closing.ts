import { withAttempts } from '#contracts/run-usage.js'
import type { StopReason } from '#contracts/result.js'
import { entryId, toolCallsOf } from '#contracts/entry.js'
import type { ToolEntry, TranscriptEntry } from '#contracts/entry.js'
import { reportEntries } from './background-state.js'
import { acceptedAnswer, cutOff } from './call-endings.js'
import type { SettledCall } from './call-endings.js'
import type { DurablePayloads } from './events.js'
import type { Conversation } from './history.js'
import type { Phase, Position, RunState, EndedError } from './state.js'
import { deepFreeze } from '#util/json.js'

/** Closes a run that has its answer. */
export function complete(state: RunState, { stopReason, at }: { stopReason: StopReason; at: string }): void {
  const { phase } = state
  state.transcript.push(...closingEntries(state, at))
  delete state.background
  const output = phase.at === 'answered' && phase.resolution.kind === 'final' ? phase.resolution.output : undefined
  state.phase = { at: 'ended', stopReason, ...(output !== undefined && { output }) }
}

/** Ends a run without an answer. Its transcript stays open, so that a retry can continue it. */
export function fail(
  state: RunState,
  failure: EndedError & Pick<DurablePayloads['run_failed'], 'stopReason' | 'attempts'>,
): void {
  if (state.phase.at === 'ended') return
  if (failure.attempts !== undefined) state.usage = withAttempts(state.usage, failure.attempts)
  state.phase = { at: 'ended', stopReason: failure.stopReason, error: endedError(failure), position: state.phase }
}

/** The conversation as it can be sent to any provider: every call has its result. A prompt that a hook blocked is not in it. */
export function closedTranscript(state: RunState): readonly TranscriptEntry[] {
  const { phase } = state
  if (phase.at === 'ended' && phase.stopReason === 'cancelled_by_hook' && phase.position?.at === 'opening')
    return state.transcript.slice(0, state.firstEntry)
  const closing = closingEntries(state, state.updatedAt)
  return closing.length === 0 ? state.transcript : [...state.transcript, ...closing]
}

/** The conversation that another run can continue: the closed transcript, as the model sees it. */
export function conversationOf(state: RunState): Conversation {
  return { entries: closedTranscript(state), ...(state.view && { view: state.view }) }
}

/** The entries that the transcript of an ended run lacks: results of open calls, reports of runs in the background. */
function closingEntries(state: RunState, at: string): readonly TranscriptEntry[] {
  const first = state.transcript.length
  return [...openResults(state, at), ...reportEntries(state)].map((entry, index) => {
    return deepFreeze({ id: entryId(first + index), at, ...entry })
  })
}

function openResults(state: RunState, at: string): readonly Omit<ToolEntry, 'id'>[] {
  const position = positionOf(state)
  const last = state.transcript.at(-1)
  if (last?.role !== 'assistant' || position === undefined) return []
  const settled = new Map(position.at === 'batch' ? position.calls.map((call) => [call.callId, call]) : [])
  const accepted = acceptedCall(position)
  return toolCallsOf(last.parts).map(({ callId, name }) => {
    const call = settled.get(callId)
    const open = callId === accepted ? acceptedAnswer(at) : cutOff(call?.started ?? false, at)
    return resultEntry({ callId, name }, call?.settled ?? open)
  })
}

/** The position of a run, or its position when it failed; undefined for a run that has its answer. */
function positionOf({ phase }: RunState): Position | undefined {
  return phase.at === 'ended' ? phase.position : phase
}

/**
 * Moves the results of the calls of the last reply into the transcript, in model order. A `final_result` call is accepted
 * here if the run continues after it.
 */
export function closeReply(state: RunState, at: string): void {
  for (const entry of resultsBefore(state, at))
    state.transcript.push(deepFreeze({ id: entryId(state.transcript.length), ...entry }))
}

/** The results that the next request sends, without those that it answers itself. */
function resultsBefore(state: RunState, at: string): readonly Omit<ToolEntry, 'id'>[] {
  const { phase } = state
  if (phase.at === 'batch') {
    const results: Omit<ToolEntry, 'id'>[] = []
    for (const call of phase.calls) if (call.settled !== null) results.push(resultEntry(call, call.settled))
    return results
  }
  if (phase.at !== 'answered') return []
  const { resolution } = phase
  const corrected = resolution.kind === 'retry_tool_output' ? resolution.callId : null
  // Calls next to the answer, or in a reply that was cut off, were never run.
  return openResults(state, at).filter(({ callId }) => callId !== corrected)
}

/** The `final_result` call by which the final answer was given. */
function acceptedCall(phase: Phase): string | null {
  return phase.at === 'answered' && phase.resolution.kind === 'final' ? phase.resolution.callId : null
}

function resultEntry(
  { callId, name }: { readonly callId: string; readonly name: string },
  { at, output, parts, ok, source }: SettledCall,
): Omit<ToolEntry, 'id'> {
  const content = parts === null ? output : [{ type: 'text' as const, text: output }, ...parts]
  return { at, role: 'tool', callId, name, content, isError: !ok, ...(source && { source }) }
}

/** The length of the transcript when the next request has added the results of the last reply. */
export function lengthWhenClosed(state: RunState): number {
  const { transcript, phase } = state
  return transcript.length + (phase.at === 'batch' ? phase.calls.length : resultsBefore(state, '').length)
}

export function endedError({ code, message, status, retryable, failure }: EndedError): EndedError {
  return {
    code,
    message,
    ...(status !== undefined && { status }),
    ...(retryable === true && { retryable }),
    ...(failure !== undefined && { failure }),
  }
}
