import type { HarnessError } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'
import { errorFromBody, errorWithin, providerError } from '../http/errors.js'
import type { Fields } from './read.js'

/** Throws when `body`, a reply of status 200 or an event of its stream, is or holds an error. */
export function refuseError(body: unknown): void {
  const said: unknown = Array.isArray(body) ? body[0] : body
  if (!isObject(said)) return
  refuseErrorIn(said)
  if (said['object'] === 'error' || said['type'] === 'error') throw errorFromBody(200, {}, said)
  // Where no answer is, words are those of an error.
  const error = Array.isArray(said['choices']) ? undefined : errorWithin(said)
  if (error !== undefined) throw error
}

/** The same of a piece of a reply, such as a choice, whose error may stand beside a part of the answer. */
export function refuseErrorIn(piece: Fields): void {
  const { error } = piece
  const isError = isObject(error) ? Object.keys(error).length > 0 : typeof error === 'string' && error !== ''
  if (isError) throw errorFromBody(200, {}, piece)
}

/** A reply that its server ended with an error of which it says no more. */
export function endedInError(word: string): HarnessError {
  return providerError(`The provider ended the reply with an error (\`${word}\`).`, { retryable: true })
}

/** A reply that stopped before its end, however much had come. */
export function cutReply(): HarnessError {
  return providerError('The reply ended before it was complete.', { retryable: true })
}

/** A reply of status 200 without an answer. */
export function noAnswer(reply: unknown): HarnessError {
  const got = JSON.stringify(reply ?? null).slice(0, 300)
  return providerError(`Expected a chat completion with \`choices\`, got \`${got}\`.`, { retryable: true })
}
