import { connectionError, isConnectionFailure, providerError, errorFromBody, notJson } from '../http/provider-errors.js'
import { flatHeaders } from '../http/exchange.js'
import { RequestGuard } from '../http/request-guard.js'
import type { TimeLimits } from '../http/options.js'
import type { Transport, WireChunk, TransportRequest } from '../http/wire-format.js'
import { stringIn } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import type { CallableModel } from './language-model.js'
import { HarnessError, messageOf } from '#contracts/errors.js'
import type { ProviderFailure } from '#contracts/provider-failure.js'
import { isObject, jsonOr } from '#util/json.js'
import { keepSecretsOf } from '#util/secrets.js'
import type { JsonObject } from '#util/json.js'

const REST_AFTER_FINISH_MS = 1000

/**
 * Calls a language model. The time limits are those of this library: the AI SDK has none. It hides connecting, which is
 * part of the time to the first byte, as is all of a reply that is not streamed. The connections belong to the provider
 * of the AI SDK.
 */
export class AiSdkTransport implements Transport {
  readonly bodies = 'json'
  readonly #model: CallableModel
  readonly #limits: TimeLimits
  #isKnown = false

  constructor(model: CallableModel, limits: TimeLimits) {
    this.#model = model
    this.#limits = limits
  }

  async send(request: TransportRequest): Promise<unknown> {
    const guard = new RequestGuard(request, this.#limits)
    try {
      const result = await this.#call('doGenerate', request, guard)
      guard.finish()
      return result
    } finally {
      guard.release()
    }
  }

  async *stream(request: TransportRequest): AsyncGenerator<readonly WireChunk[], void, void> {
    const guard = new RequestGuard(request, this.#limits)
    let reader: Reader | undefined
    try {
      reader = streamReader(await this.#call('doStream', request, guard))
      let isFinished = false
      for (;;) {
        const { done, value } = await nextPart(reader, guard, isFinished)
        if (done) break
        isFinished ||= isObject(value) && value['type'] === 'finish'
        yield [{ event: null, data: value }]
      }
      guard.finish()
    } finally {
      guard.release()
      // This has no effect on a stream that has ended; a failure to cancel an abandoned one does not matter.
      reader?.cancel().catch(() => undefined)
    }
  }

  async close(): Promise<void> {
    // The connections belong to the provider of the AI SDK.
  }

  #call(method: 'doGenerate' | 'doStream', { body }: TransportRequest, guard: RequestGuard): Promise<unknown> {
    guard.throwIfFailed()
    if (!this.#isKnown) keepModelSecrets(this.#model)
    this.#isKnown = true
    const controller = new AbortController()
    guard.onStop(() => controller.abort())
    const call = { ...(body as JsonObject), abortSignal: controller.signal }
    return guard.wait(
      'firstByteMs',
      () => this.#model[method](call),
      (error) => aiSdkError(error, false),
    )
  }
}

/** The headers of most providers hold the key; they are made by a function. */
function keepModelSecrets(model: object): void {
  const { config }: { readonly config?: unknown } = model
  if (!isObject(config) || typeof config['headers'] !== 'function') return
  try {
    const headers: unknown = (config['headers'] as () => unknown).call(config)
    if (isObject(headers)) keepSecretsOf(Object.entries(flatHeaders(headers)), true)
  } catch {
    // There is no key.
  }
}

interface Reader {
  read(): Promise<Next>
  cancel(): Promise<unknown>
}

interface Next {
  readonly done: boolean
  readonly value?: unknown
}

function streamReader(result: unknown): Reader {
  const stream = isObject(result) ? result['stream'] : undefined
  if (isReadable(stream)) return stream.getReader()
  throw providerError('The language model returned no stream for a streamed request.', { failure: 'server' })
}

function isReadable(stream: unknown): stream is { getReader(): Reader } {
  return isObject(stream) && typeof stream['getReader'] === 'function'
}

/** After the last part, the end of the stream is waited for briefly, but not required. */
async function nextPart(reader: Reader, guard: RequestGuard, isFinished: boolean): Promise<Next> {
  if (isFinished) guard.hurry(REST_AFTER_FINISH_MS)
  try {
    return await guard.wait(
      'idleMs',
      () => reader.read(),
      (error) => aiSdkError(error, true),
    )
  } catch (error) {
    if (!isFinished) throw error
    guard.throwIfAborted()
    return { done: true }
  }
}

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
  const stopped = STOPPED.get(thrown.name)
  return providerError(messageOf(thrown), {
    cause: thrown,
    retryable: stopped !== undefined,
    failure: stopped ?? 'unknown',
  })
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
  const body = errorBody(thrown)
  if (status >= 400) return errorFromBody(status, headers, body ?? thrown.message)
  if (isObject(body) && body['error'] !== undefined && body['error'] !== null)
    return errorFromBody(status, headers, body)
  if (isConnectionFailure(thrown)) return connectionError(thrown.cause, errorHost(thrown), midway)
  if (isNoJson(thrown.cause)) return notJson(thrown.cause)
  const why = thrown.cause instanceof Error ? `: ${thrown.cause.message}` : ''
  return providerError(`${thrown.message.replace(/\.$/, '')}${why}`, {
    retryable: thrown['isRetryable'] === true,
    failure: 'server',
  })
}

/** True if a value that failed the AI SDK's validation is an error of the API, in an unknown form. */
function isErrorEvent(value: unknown): boolean {
  return isObject(value) && (value['type'] === 'error' || isObject(value['error']))
}

/** The body of an error, parsed if it is JSON; undefined if there is none. */
function errorBody({ responseBody, data }: WireFields): unknown {
  if (typeof responseBody !== 'string' || responseBody.trim() === '') return data
  return jsonOr(responseBody, responseBody)
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
const STOPPED: ReadonlyMap<string, ProviderFailure> = new Map([
  ['AbortError', 'connection'],
  ['TimeoutError', 'timeout'],
])
