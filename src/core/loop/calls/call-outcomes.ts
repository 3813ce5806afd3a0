import { outcomeOf } from '../../tools/tool-result.js'
import type { ToolOutcome, ToolSpec } from '../../tools/tool-spec.js'
import { didYouMean, namesAlike } from '#util/suggest.js'
import type { PolicyDecision } from '../../extension/policy-decision.js'
import type { DeclinedAnswer } from '../../state/answers.js'
import type { BatchCall } from '../../state/batch-call.js'
import { hasFlows } from '#contracts/flows.js'

/** The outcome of a call that a person has settled: by declining its question, or by saying what became of it. */
export function outcomeByPerson({ callId, name, answers, verdict }: BatchCall): ToolOutcome | null {
  const declined = answers.find((answer): answer is DeclinedAnswer => answer.callId === callId && 'declined' in answer)
  if (declined !== undefined) {
    const reason = declined.reason === undefined ? '' : `\nReason: ${declined.reason}`
    const content = `The tool asked a question, and the person declined to answer it.${reason}`
    return { kind: 'failed', errorType: 'Declined', content, retry: false }
  }
  if (verdict === null || verdict.outcome === 'run_again') return null
  if (verdict.outcome === 'did_not_happen') {
    const content = `\`${name}\` did not take effect: the process ended while it was running, and a person has checked.`
    return { kind: 'failed', errorType: 'DidNotHappen', content, retry: false }
  }
  return outcomeOf(verdict.result)
}

export const CANCELLED: ToolOutcome = {
  kind: 'cancelled',
  reason: 'The run was cancelled before this call had ended.',
}

export function timedOut(toolName: string, timeoutMs: number): ToolOutcome {
  const content = `\`${toolName}\` had not ended after ${timeoutMs} ms and was stopped. Its outcome is unknown.`
  return { kind: 'failed', errorType: 'Timeout', content, retry: false, metadata: { tool: toolName } }
}

export function notAlone({ name }: ToolSpec): ToolOutcome {
  const content = `\`${name}\` was not run: it has to be the only call of a reply. Call it again, alone.`
  return { kind: 'failed', errorType: 'NotAlone', content, retry: true, metadata: { tool: name } }
}

export function unknownTool(name: string, known: Iterable<string>): ToolOutcome {
  const names = [...known]
  const available =
    names.length === 0 ? ' There are no tools.' : ` Available: ${namesAlike(name, names, 40).join(', ')}.`
  const content = `unknown tool ${name.slice(0, 100)}.${didYouMean(name, names)}${available}`
  return { kind: 'failed', errorType: 'NotFound', content, retry: true, metadata: { tool: name.slice(0, 100) } }
}

/** An empty reason counts as none. */
export function cancelledByHook(reason: string): ToolOutcome {
  return {
    kind: 'cancelled',
    reason: `Tool execution blocked by hook: ${reason === '' ? 'unspecified' : reason}`,
    metadata: { error_type: 'ToolCallCancelled' },
  }
}

export function denied(decision: PolicyDecision): ToolOutcome {
  const { reason } = decision
  const errorType = hasFlows(decision) ? 'UntrustedContent' : 'Denied'
  return {
    kind: 'failed',
    errorType,
    content: `The call was not made: ${reason ?? 'a policy denies it.'}`,
    retry: false,
  }
}
