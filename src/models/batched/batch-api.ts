import type { HarnessError } from '#contracts/errors.js'
import { errorFromBody, errorWithin, notJson, providerError } from '#providers/http/provider-errors.js'
import type { OtherRequest } from '#providers/http/wire-format.js'
import { bytesOf } from '#util/bytes.js'
import { isObject, parseJson } from '#util/json.js'
import type { JsonObject } from '#util/json.js'

/** A request as a batch has it. */
export interface BatchLine {
  /** Unique in its batch: results come in any order. */
  readonly id: string
  readonly body: JsonObject
}

/** What became of a request: its reply, as the API gives it elsewhere, or why there is none. */
export type BatchResult = { readonly reply: unknown } | { readonly error: HarnessError }

/** The results of a batch that has ended, by the ids of its requests. */
export interface BatchResults {
  get(id: string): BatchResult | undefined
}

type Send = (request: Omit<OtherRequest, 'headers'> & Partial<Pick<OtherRequest, 'headers'>>) => Promise<string>

/** A batch API of a provider: requests and answers, without any waiting. `send` sends one request and gives its answer. */
export interface BatchApi {
  /** Begins a batch, and gives its id. */
  submit(lines: readonly BatchLine[], send: Send, signal: AbortSignal): Promise<string>
  /** The results once the batch has ended; null before. */
  results(batch: string, send: Send, signal: AbortSignal): Promise<BatchResults | null>
  cancel(batch: string, send: Send, signal: AbortSignal): Promise<void>
}

/** The batch API for requests of this path; null if there is none that this library knows. */
export function batchApiFor(path: string): BatchApi | null {
  if (path.endsWith('/messages')) return new MessageBatches(path)
  return path === '/responses' || path === '/chat/completions' ? new OpenAiBatches(path) : null
}

/** `/v1/messages/batches` of Anthropic: the requests are in the body. */
class MessageBatches implements BatchApi {
  readonly #path: string

  constructor(path: string) {
    this.#path = `${path}/batches`
  }

  async submit(lines: readonly BatchLine[], send: Send, signal: AbortSignal): Promise<string> {
    const requests = lines.map(({ id, body }) => ({ custom_id: id, params: body }))
    const body = [bytesOf(JSON.stringify({ requests }))]
    return idIn(objectIn(await send({ method: 'POST', path: this.#path, body, signal })))
  }

  async results(batch: string, send: Send, signal: AbortSignal): Promise<BatchResults | null> {
    const path = `${this.#path}/${batch}`
    const found = objectIn(await send({ method: 'GET', path, body: [], signal }))
    if (found['processing_status'] !== 'ended') return null
    return resultsIn(await send({ method: 'GET', path: `${path}/results`, body: [], signal }), ({ result }) => {
      const { type, message, error } = isObject(result) ? result : {}
      if (type === 'succeeded') return { reply: message }
      if (type === 'errored') return { error: errorWithin(error) ?? unknownResult() }
      return { error: type === 'expired' ? expired() : type === 'canceled' ? cancelled() : unknownResult() }
    })
  }

  async cancel(batch: string, send: Send, signal: AbortSignal): Promise<void> {
    await send({ method: 'POST', path: `${this.#path}/${batch}/cancel`, body: [], signal })
  }
}

/** `/v1/batches` of OpenAI, and of servers like it: requests and results are files. */
class OpenAiBatches implements BatchApi {
  readonly #endpoint: string

  constructor(path: string) {
    this.#endpoint = `/v1${path}`
  }

  async submit(lines: readonly BatchLine[], send: Send, signal: AbortSignal): Promise<string> {
    const url = this.#endpoint
    const texts = lines.map(({ id, body }) => JSON.stringify({ custom_id: id, method: 'POST', url, body }))
    const { body, type } = formOf(`${texts.join('\n')}\n`)
    const headers = { 'content-type': type }
    const file = idIn(objectIn(await send({ method: 'POST', path: '/files', headers, body, signal })))
    const batch = { input_file_id: file, endpoint: url, completion_window: '24h' }
    const asked = { method: 'POST', path: '/batches', body: [bytesOf(JSON.stringify(batch))], signal } as const
    return idIn(objectIn(await send(asked)))
  }

  async results(batch: string, send: Send, signal: AbortSignal): Promise<BatchResults | null> {
    const found = objectIn(await send({ method: 'GET', path: `/batches/${batch}`, body: [], signal }))
    const { status, output_file_id: output, error_file_id: errors } = found
    if (status === 'failed') return allFailed(refusedBatch(found))
    if (status !== 'completed' && status !== 'expired' && status !== 'cancelled') return null
    const all = new Map<string, BatchResult>()
    for (const file of [output, errors]) {
      if (typeof file !== 'string' || file === '') continue
      const text = await send({ method: 'GET', path: `/files/${file}/content`, body: [], signal })
      for (const [id, result] of resultsIn(text, resultOfLine)) all.set(id, result)
    }
    return all
  }

  async cancel(batch: string, send: Send, signal: AbortSignal): Promise<void> {
    await send({ method: 'POST', path: `/batches/${batch}/cancel`, body: [], signal })
  }
}

function resultOfLine({ response, error }: Line): BatchResult {
  if (isObject(error)) {
    if (error['code'] === 'batch_expired') return { error: expired() }
    if (error['code'] === 'batch_cancelled') return { error: cancelled() }
    return { error: errorWithin({ error }) ?? unknownResult() }
  }
  const { status_code: status, body } = isObject(response) ? response : {}
  if (typeof status !== 'number') return { error: unknownResult() }
  return status >= 200 && status < 300 ? { reply: body } : { error: errorFromBody(status, {}, body) }
}

/** A batch that was not begun, since it is too large for the account, or its file is wrong. */
function refusedBatch({ errors }: Line): HarnessError {
  const [first] = isObject(errors) && Array.isArray(errors['data']) ? (errors['data'] as unknown[]) : []
  const { code, message } = isObject(first) ? first : {}
  const reason = typeof message === 'string' ? message : 'no reason was given'
  const isFull = typeof code === 'string' && /limit/.test(code)
  const failure = isFull ? 'rate_limit' : 'invalid'
  return providerError(`The provider has refused the batch: ${reason}`, { failure, retryable: isFull })
}

function allFailed(error: HarnessError): BatchResults {
  return { get: () => ({ error }) }
}

/** A form with one file, as text. */
function formOf(jsonl: string): { readonly body: readonly Uint8Array[]; readonly type: string } {
  const boundary = `thinharness-${globalThis.crypto.randomUUID()}`
  const field = (disposition: string, value: string): string =>
    `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${value}\r\n`
  const file = 'name="file"; filename="batch.jsonl"\r\nContent-Type: application/jsonl'
  const text = `${field('name="purpose"', 'batch')}${field(file, jsonl)}--${boundary}--\r\n`
  return { body: [bytesOf(text)], type: `multipart/form-data; boundary=${boundary}` }
}

type Line = Readonly<Record<string, unknown>>

function resultsIn(jsonl: string, read: (line: Line) => BatchResult): ReadonlyMap<string, BatchResult> {
  const lines = jsonl.split('\n').filter((line) => line.trim() !== '')
  return new Map(
    lines.map((text) => {
      const line = objectIn(text)
      return [String(line['custom_id']), read(line)]
    }),
  )
}

function objectIn(text: string): Line {
  const parsed = parseJson(text)
  if (!parsed.ok) throw notJson(new Error(parsed.problem))
  return isObject(parsed.value) ? parsed.value : {}
}

function idIn({ id }: Line): string {
  if (typeof id === 'string' && id !== '') return id
  throw providerError('The provider gave no id for the batch.', { failure: 'server', retryable: true })
}

function expired(): HarnessError {
  return providerError('The batch expired before the request had its turn.', { failure: 'timeout', retryable: true })
}

function cancelled(): HarnessError {
  return providerError('The batch was cancelled before the request had its turn.', { failure: 'unknown' })
}

export function unknownResult(): HarnessError {
  return providerError('The batch has no result for the request.', { failure: 'server', retryable: true })
}
