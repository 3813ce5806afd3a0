import type { JsonObject, JsonValue } from '../../util/json.js'

/** A person's decision on a call that needs approval. */
export interface ApprovalAnswer {
  readonly callId: string
  readonly approved: boolean
  /** Told to the model when the call is rejected. */
  readonly reason?: string
  /** Runs the call with these arguments in place of the model's; checked like any others. */
  readonly editedArguments?: JsonObject
}

/** A person's answer to what a tool asked. */
export interface QuestionAnswer {
  readonly callId: string
  readonly answer: JsonValue
}

/**
 * What a person says, as the `answer` to an item of kind `unknown_outcome`: the call took effect, with this result; it
 * did not, and is not to be run; it is to be run again.
 */
export type Verdict =
  | { readonly outcome: 'happened'; readonly result?: JsonValue }
  | { readonly outcome: 'did_not_happen' }
  | { readonly outcome: 'run_again' }

/** What a person answers to a pending item of a paused run. */
export type Answer = ApprovalAnswer | QuestionAnswer

/** The verdict in an answer that was checked. */
export function verdictOf(answer: Answer): Verdict | null {
  return 'answer' in answer ? (answer.answer as unknown as Verdict) : null
}

export const VERDICTS = ['happened', 'did_not_happen', 'run_again'] as const
