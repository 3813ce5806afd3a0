import { messageOf } from '#contracts/errors.js'
import { clipped } from '#core/tools/boundary/summaries.js'
import { isObject } from '#util/json.js'
import { withoutTerminalCodes } from '#util/terminal.js'

/** Why a request to a server failed, by the SDK's errors. */
export interface CallFailure {
  /** For the model: short, without a stack. */
  readonly message: string
  /** The connection must not be used again. */
  readonly lost: boolean
  /** The server has not seen the request: it can be sent again over a new connection. */
  readonly unseen: boolean
}

export function callFailure(error: unknown, timeoutMs: number, lastProblem: string): CallFailure {
  const code = protocolErrorCode(error)
  if (code === 'REQUEST_TIMEOUT' || (code === TIMEOUT && isProtocolError(error))) {
    const noise = lastProblem === '' ? '' : ` It sent something that is not a message: ${lastProblem}`
    const message = `The server did not answer within ${timeoutMs} ms; whether it did the work is unknown.${noise}`
    return { message, lost: false, unseen: false }
  }
  if (code === 'CONNECTION_CLOSED' || (code === CLOSED && isProtocolError(error))) {
    const message = 'The connection to the server ended before it answered; whether it did the work is unknown.'
    return { message, lost: true, unseen: false }
  }
  if (isUnauthorized(error)) {
    const message = 'The server requires a person to authorize it again. The call had no effect.'
    return { message, lost: false, unseen: false }
  }
  const unseen = code === 'NOT_CONNECTED' || httpStatus(error) === NOT_FOUND
  const answered = isProtocolError(error) || code === 'INVALID_RESULT' || code === 'CAPABILITY_NOT_SUPPORTED'
  return {
    message: clipped(withoutTerminalCodes(messageWithCause(error)), LONGEST_MESSAGE),
    lost: unseen || !answered,
    unseen,
  }
}

/** True if a person must authorize us first. */
export function isUnauthorized(error: unknown): boolean {
  return error instanceof Error && [error.name, error.constructor.name].includes('UnauthorizedError')
}

/** Codes of the SDK's own errors on older connections. */
const CLOSED = -32000
const TIMEOUT = -32001
/** A server that has forgotten the session says so. */
const NOT_FOUND = 404
const LONGEST_MESSAGE = 1_000

/** An answer of the server: JSON-RPC's codes are negative numbers. */
function isProtocolError(error: unknown): boolean {
  const code = protocolErrorCode(error)
  return typeof code === 'number' && code < 0
}

function protocolErrorCode(error: unknown): unknown {
  return isObject(error) ? error['code'] : undefined
}

function httpStatus(error: unknown): unknown {
  if (!isObject(error)) return undefined
  return error['status'] ?? error['code']
}

/** The cause of `fetch failed` has the reason. */
function messageWithCause(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error ? `${messageOf(error)}: ${cause.message}` : messageOf(error)
}
