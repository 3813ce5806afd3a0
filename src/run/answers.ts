import type { JsonObject, JsonValue } from '../util/json.js'

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

/** What a person answers to a pending item of a paused run. */
export type Answer = ApprovalAnswer | QuestionAnswer

export function isApproval(answer: Answer): answer is ApprovalAnswer {
  return 'approved' in answer
}
