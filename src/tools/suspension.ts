import type { JsonSchema, JsonValue } from '../util/json.js'

/** Key of a handler's first question without a key; pending items and answers leave it out. */
export const FIRST_KEY = '1'

/** A call that waits for a person: not an outcome, since it is entered again. Plain JSON, as a step of an engine is. */
export interface SuspendedCall {
  readonly kind: 'suspended'
  readonly payload: JsonValue
  /** JSON Schema of the answer. */
  readonly answerSchema: JsonSchema
  /** Which of the call's questions it is; left out for the first one without a key. */
  readonly key?: string
}

/** Thrown by `ask` through a handler, never seen outside. */
export class Suspension extends Error {
  override readonly name = 'Suspension'
  readonly call: SuspendedCall

  constructor(payload: JsonValue, answerSchema: JsonSchema, key: string) {
    super('The call waits for a person: a handler must not catch this.')
    this.call = { kind: 'suspended', payload, answerSchema, ...(key !== FIRST_KEY && { key }) }
  }
}

/** Thrown to a handler whose child run waits for a person, never seen outside. */
export class ChildPaused extends Error {
  override readonly name = 'ChildPaused'

  constructor() {
    super('A child run waits for a person, and this call with it: a handler must not catch this.')
  }
}
