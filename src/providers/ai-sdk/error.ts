import { HarnessError, messageOf } from '../../contracts/errors.js'
import { isObject, parseJson } from '../../util/json.js'
import { codeOf, connectionError } from '../http/connection-error.js'
import { errorFromBody, providerError } from '../http/errors.js'
import { stringIn } from './wire.js'
import type { Fields } from './wire.js'

/**
 * What a language model threw, or told in its stream, as one kind, by structure: several versions of the AI SDK may be
 * loaded at once. The error of a call itself is not kept as the cause: it holds the whole request.
 */
export function aiSdkError(thrown: unknown, midway: boolean): HarnessError {
  if (thrown instanceof HarnessError) return thrown
  if (!isObject(thrown)) return errorFromBody(200, {}, thrown)
  const misuse = misuseError(thrown)
  if (misuse !== null) return misuse
  if (typeof thrown['statusCode'] === 'number' && thrown instanceof Error)
    return statusError(thrown, thrown['statusCode'], midway)
  if (isCallError(thrown)) return connectionError(thrown['cause'] ?? thrown, hostOf(thrown), midway)
  if (!(thrown instanceof Error)) return errorFromBody(200, {}, isObject(thrown['data']) ? thrown['data'] : thrown)
  if (isErrorEvent(thrown['value'])) return errorFromBody(200, {}, thrown['value'])
  if (isNoJson(thrown)) return noJsonError(thrown)
  if (isOfConnection(thrown)) return connectionError(thrown, 'the provider', midway)
  return providerError(messageOf(thrown), { cause: thrown, retryable: STOPPED.has(thrown.name) })
}

/** Errors that a request would meet again, made before anything is sent. */
const MISUSES: ReadonlyMap<string, 'missing_key' | 'invalid_options'> = new Map([
  ['AI_LoadAPIKeyError', 'missing_key'],
  ['AI_LoadSettingError', 'invalid_options'],
  ['AI_UnsupportedFunctionalityError', 'invalid_options'],
  ['AI_InvalidPromptError', 'invalid_options'],
  ['AI_InvalidArgumentError', 'invalid_options'],
  ['AI_NoSuchModelError', 'invalid_options'],
])

function misuseError(thrown: Fields): HarnessError | null {
  const code = MISUSES.get(stringIn(thrown['name']))
  if (code === undefined) return null
  return new HarnessError(code, `The AI SDK's provider refuses: ${messageOf(thrown)}`, { cause: thrown })
}

/** An answer of the API that is an error, or cannot be read. */
function statusError(thrown: Error & Fields, status: number, midway: boolean): HarnessError {
  const headers = headersOf(thrown['responseHeaders'])
  const body = bodyOf(thrown)
  if (status >= 400) return errorFromBody(status, headers, body ?? thrown.message)
  if (isObject(body) && body['error'] !== undefined && body['error'] !== null)
    return errorFromBody(status, headers, body)
  if (isOfConnection(thrown)) return connectionError(thrown.cause, hostOf(thrown), midway)
  if (isNoJson(thrown.cause)) return noJsonError(thrown.cause)
  const why = thrown.cause instanceof Error ? `: ${thrown.cause.message}` : ''
  return providerError(`${thrown.message.replace(/\.$/, '')}${why}`, { retryable: thrown['isRetryable'] === true })
}

/** Whether what failed the AI SDK's validation is an error of the API, in a form that it does not know. */
function isErrorEvent(value: unknown): boolean {
  return isObject(value) && (value['type'] === 'error' || isObject(value['error']))
}

/** The body of an error, parsed where it is JSON; undefined where there is none. */
function bodyOf({ responseBody, data }: Fields): unknown {
  if (typeof responseBody !== 'string' || responseBody.trim() === '') return data
  const parsed = parseJson(responseBody)
  return parsed.ok ? parsed.value : responseBody
}

/** An `APICallError` without an answer. */
function isCallError(thrown: Fields): boolean {
  return thrown instanceof Error && typeof thrown['isRetryable'] === 'boolean' && typeof thrown['url'] === 'string'
}

function hostOf({ url }: Fields): string {
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).host : 'the provider'
}

function isNoJson(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AI_JSONParseError' || error instanceof SyntaxError)
}

function noJsonError(error: unknown): HarnessError {
  return providerError(`The provider sent an answer that is not JSON: ${messageOf(error)}`, { retryable: true })
}

/** What the platform's `fetch` and its bodies throw; a `TypeError` of any other kind is a mistake in a program. */
function isOfConnection(error: Error): boolean {
  const isOfFetch = error instanceof TypeError && /^(terminated|fetch failed|network)/i.test(error.message)
  return isOfFetch || codeOf(error) !== undefined
}

/** Errors of a provider that gave up by itself. */
const STOPPED = new Set(['AbortError', 'TimeoutError'])

function headersOf(headers: unknown): Readonly<Record<string, string>> {
  if (!isObject(headers)) return {}
  const texts = Object.entries(headers).filter((each): each is [string, string] => typeof each[1] === 'string')
  return Object.fromEntries(texts.map(([name, value]) => [name.toLowerCase(), value]))
}
