import { joinedBytes } from '../../util/bytes.js'
import { errorFromBody, providerError } from './errors.js'
import type { HarnessError } from '../../contracts/errors.js'
import { parseJson } from '../../util/json.js'
import type { Answer, Exchange, PostRequest } from './exchange.js'
import type { Endpoint } from './endpoint.js'
import { RequestGuard } from './request-guard.js'
import type { Limits } from './request-guard.js'
import type { EventReader } from './sse.js'
import { WHOLE_REPLY } from './wire.js'
import type { Transport, WireChunk, WireReply, WireRequest } from './wire.js'

/** Longest whole reply, in bytes. */
const LONGEST_REPLY = 64 * 1024 * 1024
/** As much of an error's body is read, in bytes. */
const LONGEST_ERROR = 64 * 1024
/** Some firewalls turn away who does not name himself. */
const OWN_HEADERS = { 'content-type': 'application/json', 'user-agent': 'thinharness' }
/** How long the end of a stream is waited for once `[DONE]` has come, in ms. */
const REST_AFTER_DONE_MS = 1000

/** JSON out, JSON or server-sent events in, over any exchange. */
export class HttpTransport implements Transport {
  readonly bodies = 'bytes'
  readonly #exchange: Exchange
  readonly #endpoint: () => Endpoint
  readonly #limits: Limits

  constructor(exchange: Exchange, endpoint: () => Endpoint, limits: Limits) {
    this.#exchange = exchange
    this.#endpoint = endpoint
    this.#limits = limits
  }

  async send(request: WireRequest): Promise<WireReply> {
    const guard = new RequestGuard(request.signal, this.#limits)
    try {
      const answer = await this.#post(request, { accept: 'application/json', 'accept-encoding': 'gzip, br' }, guard)
      return { json: await jsonOf(answer, guard), headers: answer.headers }
    } finally {
      guard.release()
    }
  }

  async *stream(request: WireRequest): AsyncGenerator<readonly WireChunk[], void, void> {
    const guard = new RequestGuard(request.signal, this.#limits)
    try {
      const answer = await this.#post(request, { accept: 'text/event-stream' }, guard)
      const first = await readOrFinish(answer, guard)
      if (first !== null && isNoStream(first)) {
        yield [{ event: WHOLE_REPLY, data: await jsonOf(answer, guard, first) }]
        return
      }
      const reader = await newEventReader()
      for (let bytes = first; bytes !== null; bytes = await readOn(answer, reader, guard)) {
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

  close(): Promise<void> {
    return this.#exchange.close()
  }

  /** Posts, and throws what the provider says when it does not say yes. */
  async #post(request: WireRequest, headers: PostRequest['headers'], guard: RequestGuard): Promise<Answer> {
    guard.throwIfFailed()
    const endpoint = this.#endpoint()
    const answer = await this.#exchange.post(
      {
        url: endpoint.urlOf(request.path),
        headers: { ...OWN_HEADERS, ...headers, ...request.headers, ...endpoint.headers },
        body: bytesOf(request.body),
      },
      guard,
    )
    if (answer.status >= 200 && answer.status < 300) return answer
    throw await refusal(answer, endpoint, guard)
  }
}

/** The parser of events is loaded by the first stream. */
async function newEventReader(): Promise<EventReader> {
  const { EventReader: Reader } = await import('./sse.js')
  return new Reader()
}

/** More of the body. After `[DONE]` its end is waited for briefly, so that the connection can be kept, and not demanded. */
async function readOn(answer: Answer, reader: EventReader, guard: RequestGuard): Promise<Uint8Array | null> {
  guard.throwIfFailed()
  if (!reader.isDone) return await readOrFinish(answer, guard)
  guard.hurry(REST_AFTER_DONE_MS)
  try {
    return await readOrFinish(answer, guard)
  } catch {
    return null
  }
}

async function readOrFinish(answer: Answer, guard: RequestGuard): Promise<Uint8Array | null> {
  const bytes = await answer.read()
  if (bytes === null) guard.finish()
  return bytes
}

/** No event begins like an object, a list or a page, whatever the content type says. */
function isNoStream(bytes: Uint8Array): boolean {
  return /^\s*[{[<]/.test(Buffer.from(bytes.subarray(0, 64)).toString('latin1'))
}

/** The whole answer, parsed. What is no JSON is a broken answer, or comes from something that is no model server. */
async function jsonOf(answer: Answer, guard: RequestGuard, first?: Uint8Array): Promise<unknown> {
  const text = await textOf(answer, guard, first)
  const parsed = parseJson(text)
  if (parsed.ok) return parsed.value
  if (text.trim() === '') throw providerError("The provider's answer is empty.", { retryable: true })
  const type = answer.headers['content-type'] ?? 'none'
  const isPage = text.trimStart().startsWith('<')
  const start = isPage ? errorFromBody(answer.status, {}, text).message : text.slice(0, 200)
  const hint = isPage ? ' Is `baseUrl` right?' : ''
  const message = `The provider's answer is not JSON (content type \`${type}\`): ${start}${hint}`
  throw providerError(message, { retryable: !isPage })
}

async function textOf(answer: Answer, guard: RequestGuard, first?: Uint8Array): Promise<string> {
  const pieces = first === undefined ? [] : [first]
  let length = first?.length ?? 0
  for (let bytes = await readOrFinish(answer, guard); bytes !== null; bytes = await readOrFinish(answer, guard)) {
    length += bytes.length
    if (length > LONGEST_REPLY) throw providerError(`The provider's answer has more than ${LONGEST_REPLY} bytes.`, {})
    pieces.push(bytes)
  }
  return joinedBytes(pieces).toString('utf8')
}

/** Why the provider refused, in its own words. */
async function refusal(answer: Answer, endpoint: Endpoint, guard: RequestGuard): Promise<HarnessError> {
  const { status, headers } = answer
  const text = endpoint.withoutSecrets(await startOf(answer, guard))
  if (status >= 400) return errorFromBody(status, headers, text)
  const location = headers['location'] ?? 'an unknown place'
  const message =
    status >= 300
      ? `The provider redirects (status ${status}) to ${location}. A request is not sent on: set \`baseUrl\` to the final address.`
      : `The provider answered with status ${status}.`
  return providerError(endpoint.withoutSecrets(message), { status })
}

/** The beginning of an error's body; less, where it does not come whole. */
async function startOf(answer: Answer, guard: RequestGuard): Promise<string> {
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
  return Buffer.concat(pieces).subarray(0, LONGEST_ERROR).toString('utf8')
}

function bytesOf(body: WireRequest['body']): readonly Uint8Array[] {
  return isPieces(body) ? body : [Buffer.from(JSON.stringify(body))]
}

function isPieces(body: WireRequest['body']): body is readonly Uint8Array[] {
  return Array.isArray(body)
}
