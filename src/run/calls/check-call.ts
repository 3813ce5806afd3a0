import type { FinishReason } from '../../contracts/entry.js'
import { checkArguments } from '../../tools/boundary/arguments.js'
import type { CheckedArguments } from '../../tools/boundary/arguments.js'
import type { ToolSpec } from '../../tools/spec.js'
import type { RunContext } from '../core/context.js'

/** The arguments of a call, checked; those of a reply that was cut off may be incomplete and are never used. */
export function checkCall(
  spec: ToolSpec,
  text: string,
  finishReason: FinishReason,
): CheckedArguments | Promise<CheckedArguments> {
  const cut = CUT_OFF[finishReason]
  if (cut === undefined) return checkArguments(spec, text)
  return {
    ok: false,
    text,
    outcome: {
      kind: 'failed',
      errorType: 'IncompleteCall',
      content: `\`${spec.name}\` was not run: ${cut}, so the call may be incomplete. Call it again, with less at once.`,
      retry: true,
    },
  }
}

const CUT_OFF: Partial<Record<FinishReason, string>> = {
  length: 'the reply was cut off at the output limit',
  refusal: 'the reply ended in a refusal',
  content_filter: "the provider's content filter stopped the reply",
  error: 'the reply ended in an error',
}

export function finishReasonOf({ state }: RunContext): FinishReason {
  const last = state.transcript.at(-1)
  return last?.role === 'assistant' ? last.finishReason : 'other'
}
