import { HarnessError } from '../../index.js'
import type { HarnessErrorCode } from '../../index.js'
import { SessionError } from '../../session/errors.js'
import type { SessionErrorCode } from '../../session/errors.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import { sentenceOf } from '../sentences.js'
import { RequestError } from './back-end.js'

/** The answer with a JSON body. */
export function json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store', ...headers },
  })
}

/** A refused request. `message` is a sentence for people: clients show the body as it is. */
export function refusal({ status, code, message, pending }: RequestError): Response {
  return json(status, { code, message, ...(pending !== undefined && { pending }) })
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
  if (error instanceof SessionError)
    return new RequestError(SESSION_STATUS[error.code] ?? 400, error.code, { message: error.message })
  if (!(error instanceof HarnessError)) return null
  const status = HARNESS_STATUS[error.code]
  const message = status === undefined || status === 503 ? sentenceOf(error) : error.message
  return new RequestError(status ?? 500, error.code, { message })
}

/** The JSON object in the body of a request. Rejects one that is larger than `maxBytes`, or no JSON object. */
export async function bodyOf(request: Request, maxBytes: number): Promise<JsonObject> {
  const text = await textOf(request, maxBytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw badRequest('Expected the body to be JSON.')
  }
  if (!isObject(value)) throw badRequest('Expected the body to be a JSON object.')
  return value as JsonObject
}

async function textOf(request: Request, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder()
  let [text, size] = ['', 0]
  const reader = request.body?.getReader()
  for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
    const bytes = next.value as Uint8Array
    size += bytes.byteLength
    if (size > maxBytes) {
      await reader?.cancel().catch(() => undefined)
      throw new RequestError(413, 'body_too_large', { message: `Expected a body of at most ${maxBytes} bytes.` })
    }
    text += decoder.decode(bytes, { stream: true })
  }
  return text + decoder.decode()
}

/** The end of a path after its last `/<name>/`: `…/runs/run_1/events` is `['run_1', 'events']` after `runs`; null if it is not there. */
export function pathAfter(url: URL, name: string): readonly string[] | null {
  const parts = url.pathname.split('/').filter((part) => part !== '')
  const index = parts.lastIndexOf(name)
  if (index === -1) return null
  return parts.slice(index + 1).map(decoded)
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw badRequest('The path is not valid.')
  }
}
