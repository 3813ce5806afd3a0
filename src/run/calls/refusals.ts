import type { ToolOutcome } from '../../tools/outcome.js'
import { didYouMean } from '../../util/suggest.js'
import type { PolicyDecision } from '../extension/policy.js'

export const CANCELLED: ToolOutcome = {
  kind: 'cancelled',
  reason: 'The run was cancelled before this call had ended.',
}

export function timedOut(toolName: string, timeoutMs: number): ToolOutcome {
  const content = `\`${toolName}\` had not ended after ${timeoutMs} ms and was stopped. Its outcome is unknown.`
  return { kind: 'failed', errorType: 'Timeout', content, retry: false, metadata: { tool: toolName } }
}

export function unknownTool(name: string, known: Iterable<string>): ToolOutcome {
  const names = [...known]
  const available = names.length === 0 ? ' There are no tools.' : ` Available: ${names.slice(0, 40).join(', ')}.`
  const content = `unknown tool ${name.slice(0, 100)}.${didYouMean(name, names)}${available}`
  return { kind: 'failed', errorType: 'NotFound', content, retry: false, metadata: { tool: name.slice(0, 100) } }
}

/** An empty reason counts as none. */
export function cancelledByHook(reason: string): ToolOutcome {
  return {
    kind: 'cancelled',
    reason: `Tool execution blocked by hook: ${reason === '' ? 'unspecified' : reason}`,
    metadata: { error_type: 'ToolCallCancelled' },
  }
}

export function denied({ reason, provenance }: PolicyDecision): ToolOutcome {
  const errorType = provenance.length > 0 ? 'UntrustedContent' : 'Denied'
  return {
    kind: 'failed',
    errorType,
    content: `The call was not made: ${reason ?? 'a policy denies it.'}`,
    retry: false,
  }
}
