import { acceptedAnswer, cutOff } from '#core/state/call-endings.js'
import type { RunEvent } from '#core/state/events.js'
import { reduceChat } from './reduce-chat.js'
import type { ChatCall, ChatSnapshot } from './reduce-chat.js'
import type { ThreadEvent } from './thread-events.js'

/**
 * The snapshot after `event`. Pure; `undefined` begins. The events are those of a conversation, or those of runs alone: then each
 * `run_started` of a run at the top adds a run. Calls that were cut off have the `output` that the model reads, which would make
 * `reduceChat` of `thinharness/ui/client` too large for pages.
 */
export function reduceConversation(snapshot: ChatSnapshot | undefined, event: ThreadEvent | RunEvent): ChatSnapshot {
  const next = reduceChat(snapshot, event)
  const [before, run] = [snapshot?.runs.at(-1)?.calls, next.runs.at(-1)]
  const isEnd = event.kind === 'run_completed' || event.kind === 'run_failed'
  if (!isEnd || run === undefined || run.calls === before) return next
  const calls = run.calls.map((call, index) => (call === before?.[index] ? call : withOutput(call)))
  return { ...next, runs: next.runs.with(-1, { ...run, calls }) }
}

/** A call that was cut off. */
function withOutput(call: ChatCall): ChatCall {
  const { cutOff: at, hasAsked = false, status } = call
  const end = status === 'completed' ? acceptedAnswer('') : cutOff(at === 'running' || hasAsked, '')
  return { ...call, output: end.output }
}
