import { bytesOf, joinedBytes, textOfBytes } from '#util/bytes.js'
import { withoutSecrets } from '#util/secrets.js'
import { errorFromBody, providerError } from './provider-errors.js'
import type { HarnessError } from '#contracts/errors.js'
import { parseJson } from '#util/json.js'
import type { HttpResponse, Exchange } from './exchange.js'
import { RequestGuard } from './request-guard.js'
import type { TimeLimits } from './options.js'
import type { EventReader } from './sse-reader.js'
import { StreamedAnswer, WHOLE_REPLY } from './wire-format.js'
import type { OtherRequest, Transport, WireChunk, TransportRequest } from './wire-format.js'
import { withCallers } from './endpoint.js'
import type { Headers, Endpoint } from './endpoint.js'

/** Longest whole reply, in bytes. */
const LONGEST_REPLY = 64 * 1024 * 1024

/** Longest part of an error's body that is read, in bytes. */
const LONGEST_ERROR = 64 * 1024

/** Some firewalls reject requests without a user agent. */
const OWN_HEADERS = { 'content-type': 'application/json', 'user-agent': 'thinharness' }

/** For a whole reply, and for a stream. */
const WHOLE = { accept: 'application/json', 'accept-encoding': 'gzip, br' }

const STREAM = { accept: 'text/event-stream' }

/** Longest wait for the end of a stream after `[DONE]`, in ms. */
const REST_AFTER_DONE_MS = 1000

/** The same after the finish reason: the usage may follow. */
export const REST_AFTER_REPLY_MS = 3000

/** Sends JSON, and reads JSON or server-sent events, over any exchange. */
export class HttpTransport implements Transport {
  readonly bodies = 'bytes'
  readonly #exchange: Exchange
  readonly #endpoint: () => Endpoint
  readonly #limits: TimeLimits
  /** The headers of the latest requests, by what they accept: most requests of a model have the same. */
  readonly #latest = new Map<Headers, { readonly own: Headers; readonly sent: Headers; readonly all: Headers }>()

  constructor(exchange: Exchange, endpoint: () => Endpoint, limits: TimeLimits) {
    this.#exchange = exchange
    this.#endpoint = endpoint
    this.#limits = limits
  }

  async send(request: TransportRequest): Promise<unknown> {
    const guard = new RequestGuard(request, this.#limits)
    try {
      const answer = await this.#post(request, WHOLE, guard)
      return await bodyValue(answer, guard)
    } finally {
      guard.release()
    }
  }

  async *stream(request: TransportRequest): AsyncGenerator<readonly WireChunk[], void, void> {
    const guard = new RequestGuard(request, this.#limits)
    try {
      const answer = await this.#post(request, STREAM, guard)
      const first = await readOrFinish(answer, guard)
      if (first !== null && isNoStream(first)) {
        yield [{ event: WHOLE_REPLY, data: await bodyJson(answer, guard, first) }]
        return
      }
      const reader = await newEventReader()
      for (let bytes = first; bytes !== null; bytes = await readMore(answer, restOf(reader, request), guard)) {
        const events = reader.push(bytes)
        if (events.length > 0) yield events
        if (reader.failure !== null) throw reader.failure
      }
      const rest = reader.end()
      if (rest.length > 0) yield rest
      if (reader.failure !== null) throw reader.failure
    } finally {
      guard.release()
    }
  }

  async call({ path, method, headers, body, signal }: OtherRequest): Promise<string> {
    const guard = new RequestGuard({ signal }, this.#limits)
    try {
      const endpoint = this.#endpoint()
      const all = { ...OWN_HEADERS, ...WHOLE, ...withCallers(headers, endpoint.headers) }
      const answer = await this.#exchange.post({ method, url: endpoint.urlOf(path), headers: all, body }, guard)
      if (answer.status >= 200 && answer.status < 300) return await bodyText(answer, guard)
      throw await refusalError(answer, guard)
    } finally {
      guard.release()
    }
  }

  async connect({ path }: Pick<TransportRequest, 'path'>): Promise<void> {
    const guard = new RequestGuard({ signal: new AbortController().signal }, this.#limits)
    try {
      await this.#exchange.connect?.(this.#endpoint().urlOf(path), guard)
    } finally {
      guard.release()
    }
  }

  close(): Promise<void> {
    return this.#exchange.close()
  }

  /** Posts the request. Throws the provider's error unless the status is 2xx. */
  async #post(request: TransportRequest, accepted: Headers, guard: RequestGuard): Promise<HttpResponse> {
    guard.throwIfFailed()
    const endpoint = this.#endpoint()
    if (endpoint.isLocal) guard.markAsFree()
    const { headers: own } = request
    const { headers: sent } = endpoint
    let latest = this.#latest.get(accepted)
    if (latest?.own !== own || latest.sent !== sent) {
      latest = { own, sent, all: { ...OWN_HEADERS, ...accepted, ...withCallers(own, sent) } }
      this.#latest.set(accepted, latest)
    }
    const answer = await this.#exchange.post(
      {
        url: endpoint.urlOf(request.path),
        headers: latest.all,
        body: request.body as readonly Uint8Array[],
      },
      guard,
    )
    request.onHeaders?.(answer.headers)
    if (answer.status >= 200 && answer.status < 300) return answer
    throw await refusalError(answer, guard)
  }
}

/** The parser of events is loaded by the first stream. */
async function newEventReader(): Promise<EventReader> {
  const { EventReader: Reader } = await import('./sse-reader.js')
  return new Reader()
}

/** How long the end of a stream is waited for once the reply is complete; null: it is not yet. */
function restOf({ isDone }: EventReader, { isComplete }: TransportRequest): number | null {
  return isDone ? REST_AFTER_DONE_MS : isComplete?.() === true ? REST_AFTER_REPLY_MS : null
}

/** More of the body. The end of a complete reply is waited for, so that the connection can be reused, but not required. */
async function readMore(answer: HttpResponse, restMs: number | null, guard: RequestGuard): Promise<Uint8Array | null> {
  guard.throwIfFailed()
  if (restMs === null) return await readOrFinish(answer, guard)
  guard.hurry(restMs)
  try {
    return await readOrFinish(answer, guard)
  } catch {
    return null
  }
}

async function readOrFinish(answer: HttpResponse, guard: RequestGuard): Promise<Uint8Array | null> {
  const bytes = await answer.read()
  if (bytes === null) guard.finish()
  return bytes
}

const [SPACE, OBJECT, LIST, TAG] = [0x20, 0x7b, 0x5b, 0x3c]

/** True for the beginning of an object, a list or a page: no event begins like this. */
function isNoStream(bytes: Uint8Array): boolean {
  const first = bytes.find((byte) => byte > SPACE)
  return first === OBJECT || first === LIST || first === TAG
}

/** The whole answer: what came counts, not what was asked for. */
async function bodyValue(answer: HttpResponse, guard: RequestGuard): Promise<unknown> {
  const text = await bodyText(answer, guard)
  if (!/^\s*(?:data|event|id|retry)?:/.test(text)) return jsonOf(text, answer)
  const reader = await newEventReader()
  const chunks = [...reader.push(bytesOf(text)), ...reader.end()]
  if (reader.failure !== null) throw reader.failure
  return new StreamedAnswer(chunks)
}

async function bodyJson(answer: HttpResponse, guard: RequestGuard, first?: Uint8Array): Promise<unknown> {
  return jsonOf(await bodyText(answer, guard, first), answer)
}

/** The whole answer, parsed. If it is not JSON, it is broken or the server is not a model server. */
function jsonOf(text: string, answer: HttpResponse): unknown {
  const parsed = parseJson(text)
  if (parsed.ok) return parsed.value
  if (text.trim() === '') throw providerError("The provider's answer is empty.", { retryable: true, failure: 'server' })
  const type = answer.headers['content-type'] ?? 'none'
  const isPage = text.trimStart().startsWith('<')
  const start = isPage ? errorFromBody(answer.status, {}, text).message : withoutSecrets(text).slice(0, 200)
  const hint = isPage ? ' Is `baseUrl` right?' : ''
  const message = `The provider's answer is not JSON (content type \`${type}\`): ${start}${hint}`
  throw providerError(message, { retryable: !isPage, failure: isPage ? 'not_found' : 'server' })
}

async function bodyText(answer: HttpResponse, guard: RequestGuard, first?: Uint8Array): Promise<string> {
  const pieces = first === undefined ? [] : [first]
  let length = first?.length ?? 0
  for (let bytes = await readOrFinish(answer, guard); bytes !== null; bytes = await readOrFinish(answer, guard)) {
    length += bytes.length
    if (length > LONGEST_REPLY)
      throw providerError(`The provider's answer has more than ${LONGEST_REPLY} bytes.`, { failure: 'server' })
    pieces.push(bytes)
  }
  return textOfBytes(joinedBytes(pieces))
}

/** The provider's refusal, in its own words. */
async function refusalError(answer: HttpResponse, guard: RequestGuard): Promise<HarnessError> {
  const { status, headers } = answer
  const text = await bodyStart(answer, guard)
  if (status >= 400) return errorFromBody(status, headers, text)
  const location = headers['location'] ?? 'an unknown address'
  const message =
    status >= 300
      ? `The provider redirects (status ${status}) to ${location}. A request is not sent on: set \`baseUrl\` to the final address.`
      : `The provider answered with status ${status}.`
  return providerError(message, { status })
}

/** The beginning of an error's body, as far as it arrives. */
async function bodyStart(answer: HttpResponse, guard: RequestGuard): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  try {
    for (let bytes = await readOrFinish(answer, guard); bytes !== null; bytes = await readOrFinish(answer, guard)) {
      pieces.push(bytes)
      length += bytes.length
      if (length >= LONGEST_ERROR) break
    }
  } catch {
    guard.throwIfAborted()
  }
  return textOfBytes(joinedBytes(pieces).subarray(0, LONGEST_ERROR))
}
