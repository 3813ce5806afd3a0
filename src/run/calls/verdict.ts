import { withinBounds } from '../../tools/boundary/invoke.js'
import type { ToolOutcome } from '../../tools/outcome.js'
import { outcomeOf } from '../../tools/result.js'
import type { ToolSpec } from '../../tools/spec.js'
import type { DeclinedAnswer, Verdict } from '../machine/answers.js'
import type { BatchCall } from '../machine/batch-call.js'

/** The outcome of a call by what a person says of it; none when it is to be run. */
export function outcomeBy(verdict: Verdict | null, spec: ToolSpec | undefined, toolName: string): ToolOutcome | null {
  if (verdict === null || verdict.outcome === 'run_again') return null
  if (verdict.outcome === 'did_not_happen') {
    const content = `\`${toolName}\` did not take effect: the process ended under it, and a person has checked.`
    return { kind: 'failed', errorType: 'DidNotHappen', content, retry: false }
  }
  const outcome = outcomeOf(verdict.result)
  return spec === undefined ? outcome : withinBounds(spec, outcome)
}

/** The outcome of a call whose question a person declined to answer. */
export function declineOf({ callId, answers }: BatchCall): ToolOutcome | null {
  const declined = answers.find((answer): answer is DeclinedAnswer => answer.callId === callId && 'declined' in answer)
  if (declined === undefined) return null
  const reason = declined.reason === undefined ? '' : `\nReason: ${declined.reason}`
  const content = `The tool asked a question, and the person declined to answer it.${reason}`
  return { kind: 'failed', errorType: 'Declined', content, retry: false }
}
