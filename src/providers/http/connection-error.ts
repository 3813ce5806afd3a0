import { messageOf } from '../../contracts/errors.js'
import type { HarnessError } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'
import { providerError } from './errors.js'

/**
 * The `provider_error` for a request that failed below HTTP: retryable, unless it would fail in the same way again.
 * `midway`: part of the answer had come.
 */
export function connectionError(error: unknown, host: string, midway: boolean): HarnessError {
  const code = codeOf(error)
  const where = midway ? ' in the middle of the answer' : ''
  const message = `The connection to ${host} failed${where}: ${phraseFor(code, error)}.`
  return providerError(message, { cause: error, retryable: code === undefined || !LASTING.test(code) })
}

/** The system's or the HTTP library's word for what went wrong, wherever in the chain of causes it is. */
export function codeOf(error: unknown, depth = 0): string | undefined {
  if (!(error instanceof Error) || depth > 4) return undefined
  if ('code' in error && typeof error.code === 'string') return error.code
  const inner = error instanceof AggregateError ? (error.errors as readonly unknown[])[0] : error.cause
  return codeOf(inner, depth + 1)
}

/** Certificates and protocols that do not fit: a person has to change something. */
const LASTING =
  /CERT|ISSUER|ALTNAME|LEAF_SIGNATURE|HOSTNAME_MISMATCH|EPROTO|ERR_SSL|ERR_INVALID|ERR_HTTP_INVALID|INVALID_ARG/

const PHRASES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there',
  ECONNRESET: 'the other side closed it',
  EPIPE: 'the other side closed it',
  UND_ERR_SOCKET: 'the other side closed it',
  ENOTFOUND: 'there is no host of this name',
  EAI_AGAIN: 'the host name could not be looked up',
  ETIMEDOUT: 'it timed out',
  UND_ERR_CONNECT_TIMEOUT: 'it timed out',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
}

function phraseFor(code: string | undefined, error: unknown): string {
  const message = innermostMessage(error)
  if (code === undefined) return message
  const phrase = PHRASES[code]
  return phrase === undefined ? `${message} (${code})` : `${phrase} (${code})`
}

/** `fetch failed` and the like say nothing: their cause does. */
function innermostMessage(error: unknown): string {
  let inner = error
  for (let depth = 0; depth < 4 && isObject(inner) && inner['cause'] instanceof Error; depth++) inner = inner['cause']
  return messageOf(inner).replace(/\.$/, '') || 'unknown error'
}
