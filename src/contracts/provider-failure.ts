/**
 * Why a provider gave no answer. `rate_limit`, `overloaded`, `timeout`, `connection` and `server` pass: the same request
 * may succeed later. `context`: it is longer than the model's window. `content`: a filter refused it. `quota`: someone has
 * to pay first. `invalid`: the request itself is at fault.
 */
export type ProviderFailure =
  | 'rate_limit'
  | 'overloaded'
  | 'timeout'
  | 'connection'
  | 'server'
  | 'context'
  | 'content'
  | 'auth'
  | 'not_found'
  | 'quota'
  | 'invalid'
  | 'unknown'

/** What an HTTP status says alone. A redirect means a wrong address. */
export function failureOfStatus(status: number | undefined): ProviderFailure {
  if (status === undefined || status < 300) return 'unknown'
  return OF_STATUS.get(status) ?? (status < 400 ? 'not_found' : status < 500 ? 'invalid' : 'server')
}

const OF_STATUS: ReadonlyMap<number, ProviderFailure> = new Map([
  [401, 'auth'],
  [402, 'quota'],
  [403, 'auth'],
  [404, 'not_found'],
  [408, 'timeout'],
  // A lock that was not free, and a request that came too early.
  [409, 'server'],
  [410, 'not_found'],
  [425, 'server'],
  [429, 'rate_limit'],
  [503, 'overloaded'],
  [504, 'timeout'],
  [524, 'timeout'],
  [529, 'overloaded'],
])
