import { HarnessError } from '../../contracts/errors.js'
import type { ClientCall } from './client-transport.js'

/** The method of an official client at `path`, such as `responses.create`. Throws `invalid_options` where there is none. */
export function clientCall(client: object, path: string): ClientCall {
  const names = path.split('.')
  let owner: unknown = client
  let method: unknown = client
  for (const name of names) {
    owner = method
    method = memberOf(owner, name)
  }
  if (typeof method !== 'function') {
    const message = `Expected \`client\` to be a client with a method \`${path}\`, got one without it.`
    throw new HarnessError('invalid_options', message)
  }
  const call = method as ClientCall
  return (body, options) => call.call(owner, body, options)
}

function memberOf(value: unknown, name: string): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined
  return (value as Readonly<Record<string, unknown>>)[name]
}
