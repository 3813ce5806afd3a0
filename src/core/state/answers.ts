import type { JsonObject, JsonValue } from '#util/json.js'

/** A person's decision on a call that needs approval. */
export interface ApprovalAnswer {
  readonly callId: string
  readonly approved: boolean
  /** Told to the model when the call is rejected. */
  readonly reason?: string | undefined
  /** Runs the call with these arguments in place of the model's; checked like any others. */
  readonly editedArguments?: JsonObject | undefined
  /** The person who answered, for the log. */
  readonly by?: string | undefined
}

/** A person's answer to a tool's question, or a verdict on a call whose outcome is unknown. */
export interface QuestionAnswer {
  readonly callId: string
  readonly answer: JsonValue
  /** The person who answered, for the log. */
  readonly by?: string | undefined
}

/** Nobody answers the question: its call fails, and the model reads that the person declined. Not for an unknown outcome. */
export interface DeclinedAnswer {
  readonly callId: string
  readonly declined: true
  /** Reported to the model. */
  readonly reason?: string | undefined
  /** The person who declined, for the log. */
  readonly by?: string | undefined
}

/**
 * The verdict of a person, as the `answer` to an item of kind `unknown_outcome`: the call took effect, with this result; it
 * did not, and is not to be run; it is to be run again.
 */
export type Verdict =
  | { readonly outcome: 'happened'; readonly result?: JsonValue | undefined }
  | { readonly outcome: 'did_not_happen' }
  | { readonly outcome: 'run_again' }

/** The answer of a person to a pending item of a paused run. */
export type Answer = ApprovalAnswer | QuestionAnswer | DeclinedAnswer

/** An answer as the call keeps it: with the key of its question, if that has one. */
export type KeptAnswer = Answer & { readonly key?: string }

/** The verdict in an answer that was checked. */
export function verdictOf(answer: Answer): Verdict | null {
  return 'answer' in answer ? (answer.answer as unknown as Verdict) : null
}
