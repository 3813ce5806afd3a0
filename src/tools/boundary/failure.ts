import { ModelRetry } from '../../contracts/errors.js'
import type { ToolOutcome } from '../outcome.js'
import { errorName, errorText } from '../../util/plain-json.js'
import { clipped } from './summaries.js'

/** Characters of a message that a thrown error gets. */
const LONGEST_MESSAGE = 1_200

/**
 * What a tool threw, as its outcome: the message of a `ModelRetry`, to be tried again; of anything else
 * `<name>: <message>` in at most 1,200 characters, without a stack.
 */
export function failureOf(thrown: unknown): ToolOutcome & { readonly kind: 'failed' } {
  if (thrown instanceof ModelRetry) {
    return { kind: 'failed', errorType: 'ModelRetry', content: thrown.message, retry: true }
  }
  const content = clipped(errorText(thrown), LONGEST_MESSAGE)
  return { kind: 'failed', errorType: errorName(thrown), content, retry: false }
}
