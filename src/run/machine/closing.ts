import type { StopReason } from '../../contracts/result.js'
import { toolCallsOf } from '../../contracts/entry.js'
import type { ToolEntry, Unstamped } from '../../contracts/entry.js'
import { FINAL_RESULT } from '../../output/format.js'
import { reportEntries } from './background-state.js'
import { acceptedAnswer, cutOff } from './settled.js'
import type { SettledCall } from './settled.js'
import { entryId } from './state.js'
import type { Ended, Phase, RunState } from './state.js'

/** Closes a run: what is still open in its transcript is answered. */
export function end(state: RunState, stopReason: StopReason, at: string, error?: Ended['error']): void {
  closeOpenCalls(state, at)
  for (const entry of reportEntries(state))
    state.transcript.push({ id: entryId(state.transcript.length), at, ...entry })
  delete state.background
  const { phase } = state
  const isFinal = stopReason === 'end_turn' && phase.at === 'answered' && phase.resolution.kind === 'final'
  const output = isFinal ? phase.resolution.output : undefined
  state.phase = { at: 'ended', stopReason, ...(output !== undefined && { output }), ...(error && { error }) }
}

/**
 * Moves the results of the batch in hand into the transcript, in model order. An answer given by a call is accepted there
 * when the run goes on behind it, because somebody still had something to say.
 */
export function closeReply(state: RunState, at: string): void {
  const { phase } = state
  if (phase.at === 'batch') {
    for (const { callId, name, settled } of phase.calls) {
      if (settled !== null) pushResult(state, { callId, name }, settled)
    }
  }
  const callId = acceptedCall(phase)
  if (callId !== null) pushResult(state, { callId, name: FINAL_RESULT }, acceptedAnswer(at))
}

/** The `final_result` call by which the final answer was given. */
function acceptedCall(phase: Phase): string | null {
  return phase.at === 'answered' && phase.resolution.kind === 'final' ? phase.resolution.callId : null
}

/** At the end of a run no call stays without an answer: the transcript can be sent to any provider as it is. */
function closeOpenCalls(state: RunState, at: string): void {
  const { phase } = state
  const settled = new Map(phase.at === 'batch' ? phase.calls.map((call) => [call.callId, call]) : [])
  const last = state.transcript.at(-1)
  const accepted = acceptedCall(phase)
  if (last?.role !== 'assistant') return
  for (const { callId, name } of toolCallsOf(last.parts)) {
    const call = settled.get(callId)
    const open = callId === accepted ? acceptedAnswer(at) : cutOff(call?.started ?? false, at)
    pushResult(state, { callId, name }, call?.settled ?? open)
  }
}

function pushResult(state: RunState, call: { callId: string; name: string }, settled: SettledCall): void {
  const { at, output, parts, ok, source } = settled
  const content = parts === null ? output : [{ type: 'text' as const, text: output }, ...parts]
  const about = { callId: call.callId, name: call.name, content, isError: !ok, ...(source && { source }) }
  const entry: Unstamped<ToolEntry> = { role: 'tool', ...about }
  state.transcript.push({ id: entryId(state.transcript.length), at, ...entry })
}

/** How many entries the transcript will have once the last reply is answered for by the next request. */
export function lengthWhenClosed({ transcript, phase }: RunState): number {
  if (phase.at === 'batch') return transcript.length + phase.calls.length
  return transcript.length + (acceptedCall(phase) === null ? 0 : 1)
}
