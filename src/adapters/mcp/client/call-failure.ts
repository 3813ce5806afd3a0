import { messageOf } from '#contracts/errors.js'
import { clipped } from '#core/tools/boundary/input-summary.js'
import { isObject, jsonObjectIn } from '#util/json.js'
import { withoutTerminalCodes } from '#util/platform/terminal.js'
import { LARGEST_MESSAGE } from '../sdk/connection.js'
import type { McpEndpoint } from '../sdk/connection.js'
import { answerFailure } from '../sdk/messages.js'

/** Why a request to a server failed, by the SDK's errors. */
export interface CallFailure {
  /** For the model: short, without a stack; says whether the call ran. */
  readonly message: string
  /** The connection must not be used again. */
  readonly lost: boolean
  /** The server has not seen the request: it can be sent again over a new connection. */
  readonly unseen: boolean
}

interface FailedCall {
  readonly kind: McpEndpoint['kind']
  readonly timeoutMs: number
  /** Recent output that was not a message; may be empty. */
  readonly lastProblem: string
}

const UNKNOWN = 'whether it did the work is unknown.'
const CLOSED = `The connection to the server ended before it answered; ${UNKNOWN}`

/** The codes of the SDK's own errors are strings, those of a server negative numbers. */
export function callFailure(error: unknown, { kind, timeoutMs, lastProblem }: FailedCall): CallFailure {
  const { code, status } = errorFields(error)
  const failure = answerFailure(error)
  if (failure === 'too_large') {
    return stays(`The call ran, but the server answered with more than ${LARGEST_MESSAGE >> 20} MiB: ask for less.`)
  }
  if (code === 'REQUEST_TIMEOUT') {
    const noise = lastProblem === '' ? '' : ` It sent something that is not a message: ${lastProblem}`
    return stays(`The server did not answer within ${timeoutMs} ms; ${UNKNOWN}${noise}`)
  }
  if (code === 'CONNECTION_CLOSED' || failure === 'closed') return { message: CLOSED, lost: true, unseen: false }
  if (isUnauthorized(error)) return stays('The server requires a person to authorize it again. The call had no effect.')
  if (code === 'temporarily_unavailable') {
    return stays(
      sentence(`Its authorization could not be renewed now: ${messageOf(error)}. The call had no effect; try again.`),
    )
  }
  if (code === 'NOT_CONNECTED' || (kind !== 'stdio' && isForgotten(error)) || isUnreached(error)) {
    return { message: sentence(messageWithCause(error)), lost: true, unseen: true }
  }
  if (typeof status === 'number') return { message: statusMessage(status, error), lost: true, unseen: false }
  if (error instanceof TypeError || systemCode(error) !== undefined) {
    return { message: sentence(CLOSED.replace('.', ` (${messageWithCause(error)}).`)), lost: true, unseen: false }
  }
  if (error instanceof SyntaxError || code === 'CLIENT_HTTP_UNEXPECTED_CONTENT') {
    return { message: `The server's answer is not a message of the protocol; ${UNKNOWN}`, lost: true, unseen: false }
  }
  const isAnswer = (typeof code === 'number' && code < 0) || code === 'INVALID_RESULT'
  return { message: sentence(messageWithCause(error)), lost: !isAnswer, unseen: false }
}

/** True if a person must authorize us first. */
export function isUnauthorized(error: unknown): boolean {
  return error instanceof Error && [error.name, error.constructor.name].includes('UnauthorizedError')
}

function stays(message: string): CallFailure {
  return { message, lost: false, unseen: false }
}

const LONGEST_MESSAGE = 1_000

function sentence(text: string): string {
  return clipped(withoutTerminalCodes(text), LONGEST_MESSAGE)
}

function errorFields(error: unknown): { readonly code?: unknown; readonly status?: unknown } {
  return isObject(error) ? { code: error['code'], status: error['status'] } : {}
}

/** What servers say of a session that they do not know, whatever the status. */
const NO_SESSION =
  /\bsession\b.{0,40}\b(?:not found|not exist|invalid|expired|unknown|missing|required|terminated|closed)\b|\b(?:no|invalid|unknown|expired|missing)\b.{0,20}\bsession\b|\bnot (?:been )?initiali[sz]ed\b/i
const NO_SESSION_CODES: readonly unknown[] = [-32600, -32000, -32001, -32002]

/** The server has forgotten the session, and has not looked at the request. */
function isForgotten(error: unknown): boolean {
  const { code, status } = errorFields(error)
  if (status === 404) return true
  const isRefusal = status === 400 || NO_SESSION_CODES.includes(code)
  return isRefusal && NO_SESSION.test(status === undefined ? messageOf(error) : bodyMessage(error))
}

const NO_CONNECTION = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]

/** No connection was made. */
function isUnreached(error: unknown): boolean {
  return NO_CONNECTION.includes(systemCode(error) ?? '')
}

/** The code of the system's error that made a request fail, such as `ECONNRESET`. */
function systemCode(error: unknown): string | undefined {
  const cause = error instanceof Error ? error.cause : undefined
  const code = isObject(cause) ? cause['code'] : undefined
  return typeof code === 'string' ? code : undefined
}

function statusMessage(status: number, error: unknown): string {
  const said = bodyMessage(error)
  const wrote = said === '' ? '' : ` It wrote: ${said}`
  const outcome = status >= 500 ? UNKNOWN : 'the call had no effect.'
  return sentence(`The server answered with status ${status}; ${outcome}${wrote}`)
}

/** The text of a reply; of an error of JSON-RPC its message. */
function bodyMessage(error: unknown): string {
  const data = isObject(error) ? error['data'] : undefined
  const text = isObject(data) && typeof data['text'] === 'string' ? data['text'] : ''
  const body = jsonObjectIn(text)
  const inner = body['error'] ?? body
  const message = isObject(inner) ? inner['message'] : inner
  return typeof message === 'string' ? message : text
}

/** The cause of `fetch failed` has the reason. */
function messageWithCause(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error ? `${messageOf(error)}: ${messageOf(cause)}` : messageOf(error)
}
