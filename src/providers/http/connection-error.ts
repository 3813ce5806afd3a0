import { messageOf } from '#contracts/errors.js'
import type { HarnessError } from '#contracts/errors.js'
import { isObject } from '#util/json.js'
import { providerError } from './errors.js'

/**
 * The `provider_error` for a request that failed below HTTP: retryable, unless it would fail in the same way again.
 * `midway`: a part of the answer had arrived.
 */
export function connectionError(error: unknown, host: string, midway: boolean): HarnessError {
  const code = systemErrorCode(error)
  const moment = midway ? ' in the middle of the answer' : ''
  const message = `The connection to ${host} failed${moment}: ${phraseFor(code, error)}.`
  return providerError(message, { cause: error, retryable: code === undefined || !LASTING.test(code) })
}

/** True for an error of the platform's `fetch` and its bodies; any other `TypeError` is a mistake in a program. */
export function isConnectionFailure(error: Error): boolean {
  const isOfFetch = error instanceof TypeError && /^(terminated|fetch failed|network)/i.test(error.message)
  return isOfFetch || systemErrorCode(error) !== undefined
}

/** The error code of the system or the HTTP library, from anywhere in the chain of causes. */
export function systemErrorCode(error: unknown, depth = 0): string | undefined {
  if (!(error instanceof Error) || depth > 4) return undefined
  if ('code' in error && typeof error.code === 'string') return error.code
  const inner = error instanceof AggregateError ? (error.errors as readonly unknown[])[0] : error.cause
  return systemErrorCode(inner, depth + 1)
}

/** Invalid certificates and protocols: they stay invalid until a person changes something. */
const LASTING =
  /CERT|ISSUER|ALTNAME|LEAF_SIGNATURE|HOSTNAME_MISMATCH|EPROTO|ERR_SSL|ERR_INVALID|ERR_HTTP_INVALID|INVALID_ARG/

const PHRASES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'no server is listening there',
  ECONNRESET: 'the server closed it',
  EPIPE: 'the server closed it',
  UND_ERR_SOCKET: 'the server closed it',
  ENOTFOUND: 'the host does not exist',
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

/** Messages like `fetch failed` say nothing; the message of the cause does. */
function innermostMessage(error: unknown): string {
  let inner = error
  for (let depth = 0; depth < 4 && isObject(inner) && inner['cause'] instanceof Error; depth++) inner = inner['cause']
  return messageOf(inner).replace(/\.$/, '') || 'unknown error'
}
