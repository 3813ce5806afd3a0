import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { providerError } from '../http/errors.js'
import { RequestGuard } from '../http/request-guard.js'
import type { TimeLimits } from '../http/request-guard.js'
import type { Transport, WireChunk, TransportRequest } from '../http/wire.js'
import { aiSdkError } from './error.js'
import type { CallableModel } from './language-model.js'

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

  constructor(model: CallableModel, limits: TimeLimits) {
    this.#model = model
    this.#limits = limits
  }

  async send(request: TransportRequest): Promise<unknown> {
    const guard = new RequestGuard(request.signal, this.#limits)
    try {
      const result = await this.#call('doGenerate', request, guard)
      guard.finish()
      return result
    } finally {
      guard.release()
    }
  }

  async *stream(request: TransportRequest): AsyncGenerator<readonly WireChunk[], void, void> {
    const guard = new RequestGuard(request.signal, this.#limits)
    let reader: Reader | undefined
    try {
      reader = readerOf(await this.#call('doStream', request, guard))
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

interface Reader {
  read(): Promise<Next>
  cancel(): Promise<unknown>
}

interface Next {
  readonly done: boolean
  readonly value?: unknown
}

function readerOf(result: unknown): Reader {
  const stream = isObject(result) ? result['stream'] : undefined
  if (isReadable(stream)) return stream.getReader()
  throw providerError('The language model returned no stream for a streamed request.', {})
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
