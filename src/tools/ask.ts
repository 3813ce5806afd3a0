import { HarnessError } from '../contracts/errors.js'
import { jsonSchemaOf, parseWith } from '../schema/schema.js'
import type { InferSchema, Schema } from '../schema/schema.js'
import type { JsonInput, JsonValue } from '../util/json.js'
import { plainJson } from '../util/plain-json.js'
import { Suspension } from './suspension.js'

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
