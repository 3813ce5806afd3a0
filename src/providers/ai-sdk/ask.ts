import { isObject } from '../../util/json.js'
import { providerError } from '../http/errors.js'
import { RequestGuard } from '../http/request-guard.js'
import type { Limits } from '../http/request-guard.js'
import type { FoldOptions } from '../http/wire.js'
import { generatedReply } from './decode.js'
import { aiSdkError } from './error.js'
import { StreamFold } from './fold.js'
import type { CallableModel } from './language-model.js'
import type { CallSettings, LanguageModelCall, PromptMessage } from './wire.js'
import type { AiSdkReply } from './wire.js'

/** One call of a language model. */
interface Question {
  readonly settings: CallSettings
  readonly prompt: readonly PromptMessage[]
  readonly signal: AbortSignal
  readonly limits: Limits
}

/**
 * Asks once, streamed when somebody listens. The time limits are ours: the AI SDK has none. It hides connecting, which is
 * part of the time to the first byte, as is all of a reply that is not streamed. Rejects with `provider_error`, or with the reason of the signal.
 */
export async function askModel(model: CallableModel, question: Question, options: FoldOptions): Promise<AiSdkReply> {
  const { settings, prompt, signal, limits } = question
  signal.throwIfAborted()
  const guard = new RequestGuard(signal, limits)
  const controller = new AbortController()
  guard.onStop(() => controller.abort())
  try {
    const call: LanguageModelCall = { ...settings, prompt, abortSignal: controller.signal }
    const reply = await (options.onDelta === undefined
      ? generate(model, call, { guard, options })
      : stream(model, call, { guard, options }))
    guard.finish()
    return reply
  } finally {
    guard.release()
  }
}

async function generate(
  model: CallableModel,
  call: LanguageModelCall,
  { guard, options }: { readonly guard: RequestGuard; readonly options: FoldOptions },
): Promise<AiSdkReply> {
  const result = await guard.wait(
    'firstByteMs',
    failing(() => model.doGenerate(call), false),
  )
  return generatedReply(result, options)
}

async function stream(
  model: CallableModel,
  call: LanguageModelCall,
  { guard, options }: { readonly guard: RequestGuard; readonly options: FoldOptions },
): Promise<AiSdkReply> {
  const fold = new StreamFold(options)
  const result = await guard.wait(
    'firstByteMs',
    failing(() => model.doStream(call), false),
  )
  const reader = readerOf(result)
  try {
    for (;;) {
      const next = await nextPart(reader, guard, fold.isFinished)
      if (next.done) return fold.end()
      fold.add(next.value)
    }
  } finally {
    // Of a stream that has ended this does nothing; how one ends that nobody reads any more is of no interest.
    reader.cancel().catch(() => undefined)
  }
}

const REST_AFTER_FINISH_MS = 1000

interface Reader {
  read(): Promise<Next>
  cancel(): Promise<unknown>
}

interface Next {
  readonly done: boolean
  readonly value?: unknown
}

/** Once the last part has come, the end of the stream is waited for briefly, and not demanded. */
async function nextPart(reader: Reader, guard: RequestGuard, isFinished: boolean): Promise<Next> {
  const read = (): Promise<Next> =>
    guard.wait(
      'idleMs',
      failing(() => reader.read(), true),
    )
  if (!isFinished) return await read()
  guard.hurry(REST_AFTER_FINISH_MS)
  try {
    return await read()
  } catch {
    guard.throwIfAborted()
    return { done: true }
  }
}

function readerOf(result: unknown): Reader {
  const stream = isObject(result) ? result['stream'] : undefined
  if (isReadable(stream)) return stream.getReader()
  throw providerError('The language model gave no stream where one was asked for.', {})
}

function isReadable(stream: unknown): stream is { getReader(): Reader } {
  return isObject(stream) && typeof stream['getReader'] === 'function'
}

async function failing<T>(work: () => PromiseLike<T>, midway: boolean): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw aiSdkError(error, midway)
  }
}
