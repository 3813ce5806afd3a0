import { HarnessError } from './errors.js'
import { Mismatch } from '#util/mismatch.js'
import { matching } from '#util/validate.js'
import type { Given, Shape } from '#util/validate.js'

/**
 * A copy of the caller's options. `name` names their owner in the message: '`bash`'. Throws `invalid_options` with the option,
 * the expected value and the given one.
 */
export function parse<T>(shape: Shape<T>, given: unknown, name: string): Given<T> {
  const read = shape.read(given)
  if (read instanceof Mismatch) throw invalidOptions(read.message(name, 'option'))
  // A shape leaves out the fields that are `undefined`.
  return read as Given<T>
}

export const runId = matching(/^[\w.:-]{1,128}$/, '1 to 128 letters, digits, `_`, `-`, `.` or `:`')

export function invalidOptions(message: string, cause?: unknown): HarnessError {
  return new HarnessError('invalid_options', message, cause === undefined ? {} : { cause })
}
