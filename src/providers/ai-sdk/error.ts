import { HarnessError, messageOf } from '#contracts/errors.js'
import { isObject, parseJson } from '#util/json.js'
import { connectionError, isConnectionFailure } from '../http/connection-error.js'
import { errorFromBody, notJson, providerError } from '../http/errors.js'
import { flatHeaders } from '../http/exchange.js'
import { stringIn } from '../wire/read.js'
import type { WireFields } from '../wire/read.js'

/**
 * An error that a language model threw, or sent in its stream, as a `HarnessError`. Errors are recognized by structure:
 * several versions of the AI SDK may be loaded at once. A call error is not kept as the cause: it contains the whole
 * request.
 */
export function aiSdkError(thrown: unknown, midway: boolean): HarnessError {
  if (thrown instanceof HarnessError) return thrown
  if (!isObject(thrown)) return errorFromBody(200, {}, thrown)
  const misuse = misuseError(thrown)
  if (misuse !== null) return misuse
  if (typeof thrown['statusCode'] === 'number' && thrown instanceof Error)
    return statusError(thrown, thrown['statusCode'], midway)
  if (isCallError(thrown)) return connectionError(thrown['cause'] ?? thrown, errorHost(thrown), midway)
  if (!(thrown instanceof Error)) return errorFromBody(200, {}, isObject(thrown['data']) ? thrown['data'] : thrown)
  if (isErrorEvent(thrown['value'])) return errorFromBody(200, {}, thrown['value'])
  if (isNoJson(thrown)) return notJson(thrown)
  if (isConnectionFailure(thrown)) return connectionError(thrown, 'the provider', midway)
  return providerError(messageOf(thrown), { cause: thrown, retryable: STOPPED.has(thrown.name) })
}

/** Errors before a request is sent, which would occur again. */
const MISUSES: ReadonlyMap<string, 'missing_key' | 'invalid_options'> = new Map([
  ['AI_LoadAPIKeyError', 'missing_key'],
  ['AI_LoadSettingError', 'invalid_options'],
  ['AI_UnsupportedFunctionalityError', 'invalid_options'],
  ['AI_InvalidPromptError', 'invalid_options'],
  ['AI_InvalidArgumentError', 'invalid_options'],
  ['AI_NoSuchModelError', 'invalid_options'],
])

function misuseError(thrown: WireFields): HarnessError | null {
  const code = MISUSES.get(stringIn(thrown['name']))
  if (code === undefined) return null
  return new HarnessError(code, `The AI SDK's provider rejected the call: ${messageOf(thrown)}`, { cause: thrown })
}

/** An answer of the API that is an error, or unreadable. */
function statusError(thrown: Error & WireFields, status: number, midway: boolean): HarnessError {
  const headers = isObject(thrown['responseHeaders']) ? flatHeaders(thrown['responseHeaders']) : {}
  const body = bodyOf(thrown)
  if (status >= 400) return errorFromBody(status, headers, body ?? thrown.message)
  if (isObject(body) && body['error'] !== undefined && body['error'] !== null)
    return errorFromBody(status, headers, body)
  if (isConnectionFailure(thrown)) return connectionError(thrown.cause, errorHost(thrown), midway)
  if (isNoJson(thrown.cause)) return notJson(thrown.cause)
  const why = thrown.cause instanceof Error ? `: ${thrown.cause.message}` : ''
  return providerError(`${thrown.message.replace(/\.$/, '')}${why}`, { retryable: thrown['isRetryable'] === true })
}

/** True if a value that failed the AI SDK's validation is an error of the API, in an unknown form. */
function isErrorEvent(value: unknown): boolean {
  return isObject(value) && (value['type'] === 'error' || isObject(value['error']))
}

/** The body of an error, parsed if it is JSON; undefined if there is none. */
function bodyOf({ responseBody, data }: WireFields): unknown {
  if (typeof responseBody !== 'string' || responseBody.trim() === '') return data
  const parsed = parseJson(responseBody)
  return parsed.ok ? parsed.value : responseBody
}

/** An `APICallError` without an answer. */
function isCallError(thrown: WireFields): boolean {
  return thrown instanceof Error && typeof thrown['isRetryable'] === 'boolean' && typeof thrown['url'] === 'string'
}

function errorHost({ url }: WireFields): string {
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).host : 'the provider'
}

function isNoJson(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AI_JSONParseError' || error instanceof SyntaxError)
}

/** Errors of a provider that stopped by itself. */
const STOPPED = new Set(['AbortError', 'TimeoutError'])
