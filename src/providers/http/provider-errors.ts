import { HarnessError, markOversized, messageOf } from '#contracts/errors.js'
import type { HarnessErrorDetails } from '#contracts/errors.js'
import { isObject, parseJson } from '#util/json.js'
import { withoutSecrets } from '#util/secrets.js'
import { refusalOf } from './classify-error.js'

type Headers = Readonly<Record<string, string>>

/** Longest message of a `provider_error`, in characters. */
const LONGEST_MESSAGE = 1000

/**
 * The error in a provider's error body: `provider_error` with the provider's message and status, `retryable` and
 * `retryAfterMs`. `body` is the parsed JSON, or the text if it is not JSON; `headers` have lower-case names. Also for
 * errors in a reply of status 200 and for error events of a stream: the type of the error decides then if it is
 * retryable, and an error without one is taken for a temporary fault of the server.
 */
export function errorFromBody(status: number, headers: Headers, body: unknown): HarnessError {
  const found = findError(body) ?? NOTHING_FOUND
  const ownStatus = status >= 400 ? status : found.status
  const message = messageFor(found, ownStatus, body)
  const { failure, retryable, isOversized } = refusalOf(ownStatus, found.words, message)
  const details: HarnessErrorDetails = {
    ...(ownStatus !== undefined && { status: ownStatus }),
    retryable: adviceOf(headers) ?? retryable,
    ...(found.retryAfterMs !== undefined && { retryAfterMs: found.retryAfterMs }),
    ...retryAfter(headers),
    failure,
  }
  if (failure === 'context')
    return new HarnessError('context_overflow', boundedMessage(withoutSecrets(message)), {
      ...details,
      retryable: false,
    })
  const error = providerError(message, details)
  if (isOversized) markOversized(error)
  return error
}

/** The error in a body with status 200, if it has an error message; otherwise undefined. */
export function errorWithin(body: unknown): HarnessError | undefined {
  return isObject(body) && findError(body)?.message !== undefined ? errorFromBody(200, {}, body) : undefined
}

/** An answer that is not JSON; `error` is that of the parser. */
export function notJson(error: unknown): HarnessError {
  const message = `The provider sent an answer that is not JSON: ${messageOf(error)}`
  return providerError(message, { retryable: true, failure: 'server' })
}

/** A `provider_error` whose message is bounded and contains no key. */
export function providerError(message: string, details: HarnessErrorDetails): HarnessError {
  return new HarnessError('provider_error', boundedMessage(withoutSecrets(message)), details)
}

/** The content of an error body. */
interface FoundError {
  readonly message: string | undefined
  /** Its type and code, if they are words. */
  readonly words: readonly string[]
  readonly status: number | undefined
  readonly retryAfterMs?: number
}

const NOTHING_FOUND: FoundError = { message: undefined, words: [], status: undefined }

/** Deepest nesting of an error: gateways wrap the errors of gateways. */
const DEEPEST = 5

function findError(body: unknown, depth = 0): FoundError | undefined {
  if (depth > DEEPEST) return undefined
  if (typeof body === 'string') return ofText(body, depth)
  if (Array.isArray(body)) return firstFoundError(body, depth)
  if (!isObject(body)) return undefined
  const { error, errors, detail, details, message, base_resp: base } = body
  const own = withDetails(ofObject(body), body['details'])
  if (isObject(error) || Array.isArray(error)) return mergedError(findError(error, depth + 1), own)
  if (own.message !== undefined)
    return trimmedText(error) === undefined ? own : { ...own, words: [...own.words, String(error)] }
  return mergedError(
    firstFoundError([error, errors, detail, details, base, isObject(message) ? message : undefined], depth),
    own,
  )
}

/** The inner error is the cause; the outer one adds details. */
function mergedError(inner: FoundError | undefined, outer: FoundError): FoundError {
  if (inner === undefined) return outer
  const { message, words, status } = inner
  const own = { message: message ?? outer.message, words: [...words, ...outer.words], status: status ?? outer.status }
  const retryAfterMs = inner.retryAfterMs ?? outer.retryAfterMs
  return retryAfterMs === undefined ? own : { ...own, retryAfterMs }
}

/** Google's APIs say in details which quota is used up, and how long to wait (`google.rpc.QuotaFailure`, `RetryInfo`). */
function withDetails(found: FoundError, details: unknown): FoundError {
  const known = Array.isArray(details) ? details.filter(isObject) : []
  const quotas = known.flatMap(({ violations }) => (Array.isArray(violations) ? violations.filter(isObject) : []))
  const words = [...known.map(({ reason }) => reason), ...quotas.map(({ quotaId }) => quotaId)].filter(isString)
  const [, seconds] =
    known.map(({ retryDelay }) => /^([\d.]+)s$/.exec(String(retryDelay))).find((match) => match !== null) ?? []
  const wait = seconds === undefined ? {} : { retryAfterMs: Math.ceil(Number(seconds) * 1000) }
  return { ...found, words: [...found.words, ...words], ...wait }
}

function firstFoundError(list: readonly unknown[], depth: number): FoundError | undefined {
  return list.map((each) => findError(each, depth + 1)).find((found) => found !== undefined)
}

function ofText(text: string, depth: number): FoundError | undefined {
  const trimmed = text.trim()
  if (trimmed === '') return undefined
  const parsed = /^[[{]/.test(trimmed) ? parseJson(trimmed) : undefined
  if (parsed?.ok === true) return findError(parsed.value, depth + 1)
  return { ...NOTHING_FOUND, message: trimmed.startsWith('<') ? textOfHtml(trimmed) : trimmed }
}

function ofObject(body: Readonly<Record<string, unknown>>): FoundError {
  const message = ['message', 'msg', 'error_message', 'error_msg', 'status_msg', 'Message']
    .map((name) => trimmedText(body[name]))
    .find(isString)
  const upstream = isObject(body['metadata']) ? trimmedText(body['metadata']['raw']) : undefined
  const inner = isObject(body['details']) ? body['details']['error_code'] : undefined
  const names = [inner, body['code'], body['type'], body['__type'], body['status']]
    .filter(isString)
    .filter((word) => !/^\d*$/.test(word))
  return {
    message: message === undefined || upstream === undefined ? message : `${message}: ${upstream}`,
    // `error` names the envelope, not the cause.
    words: names.filter((word) => word !== 'error'),
    status: [body['status_code'], body['status'], body['code']].map(httpStatus).find((status) => status !== undefined),
  }
}

function isString(value: unknown): value is string {
  return typeof value === 'string'
}

function trimmedText(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

function httpStatus(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && number >= 400 && number < 600 ? number : undefined
}

/** The title of an HTML page, or its first heading, or its text. */
function textOfHtml(html: string): string {
  const start = html.slice(0, 4096)
  const title = /<title[^>]*>([^<]*)/i.exec(start)?.[1] ?? /<h1[^>]*>([^<]*)/i.exec(start)?.[1] ?? ''
  const text = title.trim() === '' ? start.replace(/<(style|script)[^]*?<\/\1>/gi, ' ').replace(/<[^>]*>/g, ' ') : title
  return text.replace(/\s+/g, ' ').trim()
}

function messageFor(found: FoundError, status: number | undefined, body: unknown): string {
  if (found.message === undefined || found.message === '') return messageWithout(found, status, body)
  // A secret is masked before the text is cut: a part of it would not be known.
  const message = withoutSecrets(found.message)
  const word = found.words.map(withoutSecrets).find((each) => !message.includes(each))
  return word === undefined ? message : `${boundedMessage(message, LONGEST_MESSAGE - 100)} (${word.slice(0, 80)})`
}

function messageWithout(found: FoundError, status: number | undefined, body: unknown): string {
  const who = status === undefined ? 'The provider reported an error' : `The provider answered with status ${status}`
  const rest = found.words[0] ?? textOfJson(body)
  return rest === undefined ? `${who}.` : `${who}: ${rest}`
}

function textOfJson(body: unknown): string | undefined {
  if (!isObject(body) || Object.keys(body).length === 0) return undefined
  try {
    return JSON.stringify(body)
  } catch {
    // Nested too deeply, or created by a client from something other than JSON.
    return undefined
  }
}

function adviceOf(headers: Headers): boolean | undefined {
  const advice = headers['x-should-retry']
  return advice === 'true' || advice === 'false' ? advice === 'true' : undefined
}

/** The wait that a server asks for: `retry-after-ms`, or `retry-after` in seconds or as a date. */
function retryAfter(headers: Headers): { readonly retryAfterMs?: number } {
  const retryAfterMs = inMs(headers['retry-after-ms']) ?? inSeconds(headers['retry-after'], headers['date'])
  return retryAfterMs === undefined ? {} : { retryAfterMs: Math.ceil(Math.max(0, retryAfterMs)) }
}

function inMs(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined
}

/** A date is counted from the server's own clock, `now`, if it tells it. */
function inSeconds(text: string | undefined, now = ''): number | undefined {
  const seconds = inMs(text)
  if (seconds !== undefined) return seconds * 1000
  // An HTTP date begins with the day of the week; `Date.parse` would accept bare numbers and more.
  const date = /^\s*[a-z]{3}/i.test(text ?? '') ? Date.parse(text ?? '') : Number.NaN
  const sent = Date.parse(now)
  return Number.isNaN(date) ? undefined : date - (Number.isNaN(sent) ? Date.now() : sent)
}

function boundedMessage(text: string, longest = LONGEST_MESSAGE): string {
  if (text.length <= longest) return text
  // A surrogate pair is not cut in two.
  return `${text.slice(0, longest - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}

/**
 * The `provider_error` for a request that failed below HTTP: retryable, unless it would fail in the same way again.
 * `midway`: a part of the answer had arrived.
 */
export function connectionError(error: unknown, host: string, midway: boolean): HarnessError {
  const code = systemErrorCode(error)
  const moment = midway ? ' in the middle of the answer' : ''
  const message = `The connection to ${host} failed${moment}: ${phraseFor(code, error)}.`
  const failure = TIMED_OUT.test(`${code} ${message}`) ? 'timeout' : 'connection'
  const isLasting = code !== undefined && LASTING_CODES.test(code)
  const failed = providerError(message, { cause: error, retryable: !isLasting, failure })
  return !midway && code !== undefined && (isLasting || UNREACHED.test(code)) ? markUnsent(failed) : failed
}

/** The connection was never open. */
const UNREACHED = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/

const unsent = new WeakSet<Error>()

/** Notes that the request never reached the provider: it costs nothing. */
export function markUnsent<Failed extends Error>(error: Failed): Failed {
  unsent.add(error)
  return error
}

/** False if the provider has certainly not worked on the request: it was never sent, or was too long. */
export function wasSent(error: unknown): boolean {
  if (!(error instanceof HarnessError)) return true
  return !unsent.has(error) && !['context_overflow', 'missing_key', 'invalid_options'].includes(error.code)
}

const TIMED_OUT = /timed? ?out|_TIMEOUT/i

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
const LASTING_CODES =
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

/** The error of a reply with items that wait for the client, of tools that only the caller can have declared. */
export function waitsForClient(types: readonly string[]): HarnessError {
  const names = [...new Set(types)].map((type) => `\`${type}\``).join(', ')
  return new HarnessError(
    'unexpected_model_behavior',
    `The reply waits for the client to answer ${names}, which this library cannot do: remove the tool from the model's own fields, or offer a tool of the harness instead.`,
  )
}
