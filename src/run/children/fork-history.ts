import { renderEnvelope } from '../../tools/boundary/envelope.js'
import { entryId, toolCallsOf } from '../../contracts/entry.js'
import type { TranscriptEntry } from '../../contracts/entry.js'
import type { RunState } from '../machine/state.js'

/**
 * The conversation that a fork under call `callId` begins with: the run's own up to the reply that made the call, with an
 * answer to each call of that reply. The outcomes of the other calls are left out, since they depend on the order of execution: the same
 * call always gives the same conversation.
 */
export function forkHistory({ transcript }: RunState, callId: string, at: string): readonly TranscriptEntry[] {
  const reply = transcript.findLastIndex((entry) => callsIn(entry).some((call) => call.callId === callId))
  const before = transcript.slice(0, reply + 1)
  const answers = before
    .slice(-1)
    .flatMap(callsIn)
    .map((call, index): TranscriptEntry => {
      const content = call.callId === callId ? THIS_CALL : OTHER_CALL
      return {
        id: entryId(before.length + index),
        at,
        role: 'tool',
        callId: call.callId,
        name: call.name,
        content: renderEnvelope({ ok: true, content, metadata: {} }),
        isError: false,
      }
    })
  return [...before, ...answers]
}

function callsIn(entry: TranscriptEntry): ReturnType<typeof toolCallsOf> {
  return entry.role === 'assistant' ? toolCallsOf(entry.parts) : []
}

const THIS_CALL =
  'This call has begun a copy of this conversation, and you are the copy: do the task that comes next. Your answer goes back to the original as the result of this call.'
const OTHER_CALL =
  'The original of this conversation takes care of this call. You are a copy of it: leave this call alone.'
