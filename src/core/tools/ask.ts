import { HarnessError } from '#contracts/errors.js'
import { parseWith } from '#schema/schema-check.js'
import { jsonSchemaOf } from '#schema/schema.js'
import type { InferSchema, Schema } from '#schema/schema.js'
import type { JsonInput, JsonSchema, JsonValue } from '#util/json.js'
import { plainJson } from '#util/plain-json.js'

/** Asks a person; see `ToolContext.ask`. */
export type Ask = <S extends Schema>(
  payload: JsonInput,
  answer: S,
  options?: { readonly key?: string | undefined },
) => Promise<InferSchema<S>>

/** Gives the answers that there are, by key, and suspends the call at the first question without one. */
export function askWith(answers: ReadonlyMap<string, JsonValue>, toolName: string): Ask {
  let unnamed = 0
  const ask = async <S extends Schema>(
    payload: JsonInput,
    schema: S,
    { key = String((unnamed += 1)) }: { readonly key?: string | undefined } = {},
  ): Promise<InferSchema<S>> => {
    if (!/^[\w.:-]{1,64}$/.test(key)) throw invalidKey(key)
    const known = answers.get(key)
    if (known === undefined)
      throw new Suspension(plainJson(payload), jsonSchemaOf(schema, `the schema of \`ask\` in \`${toolName}\``), key)
    const parsed = await parseWith(schema, known)
    if (parsed.ok) return parsed.value as InferSchema<S>
    const issues = parsed.issues.map(({ path, message }) => `\`${['answer', ...path].join('.')}\`: ${message}`)
    throw new HarnessError(
      'invalid_answer',
      `The answer to the question of \`${toolName}\` does not fit: ${issues.join('; ')}`,
    )
  }
  return (...question) => {
    const answer = ask(...question)
    // A handler that does not await its question is none that fails.
    answer.catch(() => undefined)
    return answer
  }
}

function invalidKey(key: string): HarnessError {
  const message = `Expected \`key\` to be 1 to 64 letters, digits, \`_\`, \`-\`, \`.\` or \`:\`, got \`${key}\`.`
  return new HarnessError('invalid_options', message)
}

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

/** Thrown to a handler if its child run waits for a person; internal. */
export class ChildPaused extends Error {
  override readonly name = 'ChildPaused'

  constructor() {
    super('A child run waits for a person, and this call with it: a handler must not catch this.')
  }
}
