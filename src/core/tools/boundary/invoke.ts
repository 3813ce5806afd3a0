import { ModelRetry } from '#contracts/errors.js'
import type { JsonObject } from '#util/json.js'
import { errorName, errorText } from '#util/plain-json.js'
import { ChildPaused, Suspension } from '../ask.js'
import type { SuspendedCall } from '../ask.js'
import { isOutcome, outcomeOf } from '../tool-result.js'
import type { ToolContext, ToolOutcome, ToolSpec } from '../tool-spec.js'
import { clipped } from './input-summary.js'

/**
 * Calls a tool once with checked arguments. Its result, or the error that it throws, becomes an outcome, which
 * has no bounds yet; a handler that asks a person has no outcome yet. Does not reject. Applies no time limit and no abort: the tool has
 * `context.signal`, and its caller decides how long to wait.
 */
export async function invoke<Deps>(
  spec: ToolSpec<Deps>,
  args: JsonObject,
  context: ToolContext<Deps>,
): Promise<ToolOutcome | SuspendedCall> {
  try {
    const returned: unknown = await spec.call(args, context)
    return isOutcome(returned) ? returned : outcomeOf(returned)
  } catch (thrown) {
    if (thrown instanceof Suspension) return thrown.call
    if (thrown instanceof ChildPaused) return CHILD_PAUSED
    return failureOf(thrown)
  }
}

/** The child asks its own questions. */
const CHILD_PAUSED: SuspendedCall = { kind: 'suspended', payload: null, answerSchema: {} }

/**
 * The outcome of a tool that threw: the message of a `ModelRetry`, to be tried again; for anything else
 * `<name>: <message>` in at most 1,200 characters, without a stack.
 */
export function failureOf(thrown: unknown): ToolOutcome & { readonly kind: 'failed' } {
  if (thrown instanceof ModelRetry) {
    return { kind: 'failed', errorType: 'ModelRetry', content: thrown.message, retry: true }
  }
  const content = clipped(errorText(thrown), LONGEST_MESSAGE)
  return { kind: 'failed', errorType: errorName(thrown), content, retry: false }
}

/** Of a thrown error, in characters. */
const LONGEST_MESSAGE = 1_200

/** An outcome that lists the repairs of its call. */
export function noteRepairs(outcome: ToolOutcome, repairs: readonly string[]): ToolOutcome {
  if (repairs.length === 0 || outcome.kind === 'rejected') return outcome
  return { ...outcome, metadata: { ...outcome.metadata, repairs } }
}
