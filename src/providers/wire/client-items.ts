import { HarnessError } from '#contracts/errors.js'

/** The error of a reply with items that wait for the client, of tools that only the caller can have declared. */
export function waitsForClient(types: readonly string[]): HarnessError {
  const names = [...new Set(types)].map((type) => `\`${type}\``).join(', ')
  return new HarnessError(
    'unexpected_model_behavior',
    `The reply waits for the client to answer ${names}, which this library cannot do: remove the tool from the model's own fields, or offer a tool of the harness instead.`,
  )
}
