import { HarnessError } from '../../errors.js'
import { isObject } from '../../util/json.js'
import { errorFromBody } from '../errors.js'

/** Throws when `body`, a reply of status 200 or an event of its stream, is or holds an error (H-05). */
export function refuseError(body: unknown): void {
  if (Array.isArray(body)) return refuseError(body[0])
  if (!isObject(body)) return
  if (isError(body['error']) || body['object'] === 'error' || body['type'] === 'error') throw errorFromBody(200, {}, body)
}

/** The same of one choice; its error may stand beside a part of the answer. */
export function refuseChoiceError(choice: Readonly<Record<string, unknown>>): void {
  if (isError(choice['error'])) throw errorFromBody(200, {}, { error: choice['error'] })
}

/** A reply that its server ended with an error of which it says no more. */
export function endedInError(word: string): HarnessError {
  const message = `The provider ended the reply with an error (\`${word}\`).`
  return new HarnessError('provider_error', message, { retryable: true })
}

/** A stream that stopped without its last event, however much had come. */
export function cutStream(): HarnessError {
  return new HarnessError('provider_error', 'The stream ended before the reply was complete.', { retryable: true })
}

/** A reply of status 200 without an answer. */
export function noAnswer(reply: unknown): HarnessError {
  const text = JSON.stringify(reply)
  const message = `Expected a chat completion with \`choices\`, got ${text === undefined ? 'nothing' : `\`${text.slice(0, 300)}\``}.`
  return new HarnessError('provider_error', message, { retryable: true })
}

function isError(error: unknown): boolean {
  return isObject(error) ? Object.keys(error).length > 0 : typeof error === 'string' && error !== ''
}
