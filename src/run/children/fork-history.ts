import { renderEnvelope } from '#core/tools/boundary/envelope.js'
import { entryId, toolCallsOf } from '#contracts/entry.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import type { SpawnOptions } from '#core/tools/tool-spec.js'
import type { Conversation } from '#core/state/history.js'
import type { RunState } from '#core/state/state.js'
import { withSlice } from './history-slice.js'

/** The prompt of a child under call `callId`: with a slice of the conversation before that call, if it gets one. */
export function promptOfChild(
  prompt: SpawnOptions['prompt'],
  history: SpawnOptions['history'],
  { state: { transcript }, callId }: { readonly state: RunState; readonly callId: string },
): SpawnOptions['prompt'] {
  if (typeof history !== 'object') return prompt
  return withSlice(prompt, transcript.slice(0, replyWith(transcript, callId)), history.tokens)
}

/** The conversation that a child under call `callId` begins with. */
export function historyOfChild(
  history: SpawnOptions['history'],
  state: RunState,
  { callId, at }: { readonly callId: string; readonly at: string },
): Conversation {
  if (history !== 'fork' && history !== 'inherit') return { entries: [] }
  return { entries: forkHistory(state, callId, at), ...(state.view && { view: state.view }) }
}

/**
 * The run's own conversation up to the reply that made the call, with an answer to each call of that reply. The outcomes of the
 * other calls are left out, since they depend on the order of execution: the same call always gives the same conversation.
 */
function forkHistory({ transcript }: RunState, callId: string, at: string): readonly TranscriptEntry[] {
  const reply = replyWith(transcript, callId)
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

function replyWith(transcript: readonly TranscriptEntry[], callId: string): number {
  return transcript.findLastIndex((entry) => callsIn(entry).some((call) => call.callId === callId))
}

function callsIn(entry: TranscriptEntry): ReturnType<typeof toolCallsOf> {
  return entry.role === 'assistant' ? toolCallsOf(entry.parts) : []
}

const THIS_CALL =
  'This call has begun a copy of this conversation, and you are the copy: do the task that comes next. Your answer goes back to the original as the result of this call.'
const OTHER_CALL =
  'The original of this conversation takes care of this call. You are a copy of it: leave this call alone.'
