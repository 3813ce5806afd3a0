import { HarnessError } from '#contracts/errors.js'
import type { HarnessErrorCode } from '#contracts/errors.js'
import type { PendingItem } from '#contracts/result.js'
import { SessionError } from '#session/errors.js'
import type { SessionErrorCode } from '#session/errors.js'
import { DIALECTS } from '../ai-sdk/chunk.js'
import type { Dialect } from '../ai-sdk/chunk.js'
import { InputError } from '../input-error.js'
import { errorSentence } from '../error-sentence.js'
import type { HostPaths } from './host-paths.js'

/** Answers a request: the form of every handler. */
export type Handler = (request: Request) => Promise<Response>

interface RequestErrorDetails {
  readonly message: string
  readonly pending?: readonly PendingItem[] | undefined
  /** The part of the request that is wrong. */
  readonly param?: string | undefined
}

/** A request that is refused: the answer is JSON with the status. */
export class RequestError extends Error {
  readonly status: number
  readonly code: string
  readonly pending: readonly PendingItem[] | undefined
  readonly param: string | undefined

  constructor(status: number, code: string, { message, pending, param }: RequestErrorDetails) {
    super(message)
    this.status = status
    this.code = code
    this.pending = pending
    this.param = param
  }
}

/** A handler whose refusals are answers. `form`: how they are written. */
export function asHandler(
  { options: { paths } }: { readonly options: { readonly paths: HostPaths } },
  answer: (request: Request, url: URL) => Promise<Response>,
  form: (error: RequestError) => Response = refusalResponse,
): Handler {
  return async (request) => {
    try {
      return withoutPaths(await answer(request, new URL(request.url)), paths)
    } catch (error) {
      const refused = asRequestError(error) ?? new RequestError(500, 'error', { message: 'Something went wrong.' })
      return withoutPaths(form(refused), paths)
    }
  }
}

/** The texts of JSON bodies. */
const texts = new WeakMap<Response, string>()

/** A JSON body without paths of the host; what the host answers itself is sent as it is. */
function withoutPaths(response: Response, paths: HostPaths): Response {
  const text = texts.get(response)
  const shown = text === undefined ? undefined : paths.hide(text)
  if (shown === text || shown === undefined) return response
  return new Response(shown, { status: response.status, headers: response.headers })
}

/** The answer with a JSON body. */
export function jsonResponse(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Response {
  const text = JSON.stringify(body)
  const response = new Response(text, {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store', ...headers },
  })
  texts.set(response, text)
  return response
}

/** A refused request. `message` is a sentence for people: clients show the body as it is. */
export function refusalResponse({ status, code, message, pending }: RequestError): Response {
  return jsonResponse(status, { code, message, ...(pending !== undefined && { pending }) })
}

export function badRequest(message: string): RequestError {
  return new RequestError(400, 'invalid_request', { message })
}

/** The longest wait of `?wait=`, in s. */
const LONGEST_WAIT_S = 60

/** The time of `?wait=<s>`, in ms. Throws a `RequestError` for anything but a number of seconds from 0 to 60. */
export function waitMs(wait: string): number {
  const seconds = Number(wait)
  if (seconds >= 0 && seconds <= LONGEST_WAIT_S) return seconds * 1000
  throw badRequest(
    `Expected \`wait\` to be a number of seconds from 0 to ${LONGEST_WAIT_S}, got "${wait.slice(0, 80)}".`,
  )
}

const HARNESS_STATUS: Partial<Record<HarnessErrorCode, number>> = {
  invalid_options: 400,
  invalid_answer: 422,
  guard_blocked: 422,
  invalid_state: 409,
  run_owned: 409,
  run_exists: 409,
  run_not_found: 404,
  closed: 503,
}

const SESSION_STATUS: Partial<Record<SessionErrorCode, number>> = {
  busy: 409,
  closed: 503,
  invalid_answer: 422,
  queue_full: 429,
  file_too_large: 413,
  unsupported_media: 415,
  thread_exists: 409,
  thread_not_found: 404,
  message_not_found: 404,
  thread_owned: 409,
}

/** Errors that are about the request say what was wrong; others have the sentence of their code, or none. */
export function asRequestError(error: unknown): RequestError | null {
  if (error instanceof RequestError) return error
  if (error instanceof InputError)
    return new RequestError(400, 'invalid_request', { message: error.message, param: error.param })
  if (error instanceof SessionError)
    return new RequestError(SESSION_STATUS[error.code] ?? 400, error.code, { message: error.message })
  if (!(error instanceof HarnessError)) return null
  const status = HARNESS_STATUS[error.code]
  const isOfRequest = status !== undefined && status !== 503 && error.code !== 'invalid_options'
  const message = isOfRequest ? error.message : errorSentence(error)
  return new RequestError(status ?? 500, error.code, { message })
}

/** The version of the AI SDK on the page: `?dialect=`, else that of the options, else 7. */
export function requestDialect(
  { searchParams }: URL,
  { dialect = 7 }: { readonly dialect?: Dialect | undefined },
): Dialect {
  const text = searchParams.get('dialect')
  const version = text === null ? dialect : Number(text)
  const known = DIALECTS.find((each) => each === version)
  if (known === undefined)
    throw badRequest(`Expected \`dialect\` to be one of ${DIALECTS.join(', ')}, got "${String(text).slice(0, 80)}".`)
  return known
}

/** The end of a path after its last `/<name>/`: `…/runs/run_1/events` is `['run_1', 'events']` after `runs`; null if it is not there. */
export function pathAfter(url: URL, name: string): readonly string[] | null {
  const parts = url.pathname.split('/').filter((part) => part !== '')
  const index = parts.lastIndexOf(name)
  if (index === -1) return null
  return parts.slice(index + 1).map(decodePart)
}

/** The code of an error. */
export function errorCode(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw badRequest('The path is not valid.')
  }
}
