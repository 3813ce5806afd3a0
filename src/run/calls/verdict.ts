import { withinBounds } from '../../tools/boundary/invoke.js'
import type { ToolOutcome } from '../../tools/outcome.js'
import { outcomeOf } from '../../tools/result.js'
import type { ToolSpec } from '../../tools/spec.js'
import type { Verdict } from '../machine/answers.js'

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
