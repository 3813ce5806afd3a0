import { HarnessError } from 'thinharness'
import type { AssistantPart, Model, ModelSession, ModelTurn, TranscriptEntry, TurnOptions } from 'thinharness'
import { between, oneOf } from '../crash/random.js'
import type { Random } from '../crash/random.js'
import type { VirtualTime } from './virtual-time.js'

export interface ModelMeans {
  readonly time: Pick<VirtualTime, 'sleep'>
  readonly random: Random
  /** From 0 (never) to 1: how often a request fails. */
  readonly fails: number
  /** A number for the next call id. */
  readonly nextCall: () => number
}

const USAGE = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
const WORDS = ['One', 'two', 'three', 'four', 'five'] as const
/** Requests of one prompt with calls; after that the model answers. */
const MOST_TURNS = 6

const TOOLS = [
  'look',
  'look',
  'write',
  'mail',
  'pay',
  'pay',
  'ask',
  'slow',
  'stubborn',
  'delegate',
  'background',
  'nested',
  'unknown',
] as const

/** A model that replies, calls tools and fails by chance, in virtual time. */
export class SimModel implements Model {
  readonly provider = 'sim'
  readonly id: string
  readonly capabilities = {}
  readonly #means: ModelMeans
  #isCalm = false

  constructor(id: string, means: ModelMeans) {
    this.id = id
    this.#means = means
  }

  /** From now on it answers at once, without calls. */
  calm(): void {
    this.#isCalm = true
  }

  openSession(): ModelSession {
    return { turn: (transcript, _constants, options) => this.#turn(transcript, options) }
  }

  async #turn(transcript: readonly TranscriptEntry[], options: TurnOptions): Promise<ModelTurn> {
    const { random, fails } = this.#means
    options.signal.throwIfAborted()
    if (this.#isCalm) return this.#turnOf([{ type: 'text', text: 'Done.' }], 'stop')
    await this.#wait(between(random, 1, random() < 0.03 ? 90_000 : 400), options.signal)
    while (random() < fails * 0.5) {
      const withdrawn = random() < 0.5
      if (withdrawn) options.onDelta?.({ kind: 'text_delta', text: 'Never' })
      options.onRetry?.({ attempt: 1, delayMs: 100, reason: 'The connection was cut.', status: null, withdrawn })
      await this.#wait(100, options.signal)
    }
    const parts = this.#partsOf(transcript)
    if (random() < fails) await this.#fail(options, parts)
    for (const part of parts) {
      if (part.type !== 'text') continue
      for (const text of part.text.match(/\S+\s*/g) ?? []) {
        options.onDelta?.({ kind: 'text_delta', text })
        if (random() < 0.3) await this.#wait(between(random, 1, 50), options.signal)
      }
    }
    if (random() < fails * 0.5)
      return this.#turnOf(withoutCalls(parts), oneOf(random, ['length', 'content_filter', 'refusal']))
    if (random() < fails * 0.3) return this.#strange(parts)
    return this.#turnOf(parts, parts.some(({ type }) => type === 'tool_call') ? 'tool_calls' : 'stop')
  }

  #partsOf(transcript: readonly TranscriptEntry[]): AssistantPart[] {
    const { random, nextCall } = this.#means
    const prompt = transcript.findLastIndex((entry) => entry.role === 'user')
    const turns = transcript.slice(prompt).filter((entry) => entry.role === 'assistant').length
    const text = WORDS.slice(0, between(random, 1, WORDS.length)).join(' ')
    if (turns >= MOST_TURNS || random() < 0.3) return [{ type: 'text', text }]
    const calls = Array.from({ length: random() < 0.6 ? 1 : between(random, 2, 3) }, (): AssistantPart => {
      const bad = random() < 0.05
      const name = oneOf(random, TOOLS)
      return { type: 'tool_call', callId: `call_${nextCall()}`, name, arguments: bad ? '{"n":' : '{"n":1}' }
    })
    return random() < 0.3 ? [{ type: 'text', text }, ...calls] : calls
  }

  /** How a request fails: at once, in the middle of its reply, late, never; in the words of a provider, or by a mistake. */
  async #fail({ onDelta, signal }: TurnOptions, parts: readonly AssistantPart[]): Promise<never> {
    const { random } = this.#means
    const way = between(random, 0, 9)
    if (way === 0) throw new TypeError('The model has a mistake.')
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- models of others may.
    if (way === 1) throw 'overloaded'
    if (way === 2) {
      for (const part of parts) if (part.type === 'text') onDelta?.({ kind: 'text_delta', text: part.text.slice(0, 6) })
      await this.#wait(20, signal)
      throw new HarnessError('provider_error', 'The reply was cut off.')
    }
    if (way === 3) {
      await this.#wait(300_000, signal)
      throw new HarnessError('provider_error', 'The provider did not answer in time.')
    }
    if (way === 4) throw new HarnessError('context_overflow', 'The conversation is too long.', { status: 400 })
    if (way === 5) throw new DOMException('Somebody else aborted it.', 'AbortError')
    const status = oneOf(random, [400, 401, 404, 429, 500, 529])
    const retryable = status === 429 || status >= 500
    const after = status === 429 ? { retryAfterMs: 1_000 } : {}
    throw new HarnessError('provider_error', `The provider answered with ${status}.`, { status, retryable, ...after })
  }

  /** A reply that no model should give: nothing, no turn at all, an id or a name that is empty or twice, half a character, a wrong ending. */
  #strange(parts: readonly AssistantPart[]): ModelTurn {
    const { random } = this.#means
    const calls = (...ids: readonly string[]): AssistantPart[] =>
      ids.map((callId) => ({ type: 'tool_call', callId, name: 'look', arguments: '{"n":1}' }))
    switch (between(random, 0, 6)) {
      case 0:
        return this.#turnOf([], 'stop')
      case 1:
        return null as unknown as ModelTurn
      case 2:
        return this.#turnOf(calls('call_1', 'call_1', ''), 'tool_calls')
      case 3:
        return this.#turnOf([{ type: 'tool_call', callId: 'call_x', name: '', arguments: '' }], 'tool_calls')
      case 4:
        return this.#turnOf([{ type: 'text', text: 'Half \ud83d' }, ...calls('__proto__')], 'stop')
      case 5:
        return this.#turnOf([{ type: 'text', text: '' }], 'tool_calls')
      default:
        return this.#turnOf(parts, 'error')
    }
  }

  /** Until the signal, or sometimes a while longer. */
  #wait(ms: number, signal: AbortSignal): Promise<void> {
    const { random, time } = this.#means
    return new Promise((resolve, reject) => {
      const leave = (): void => reject(signal.reason as Error)
      const onAbort = (): void => {
        if (random() < 0.9) leave()
        else void time.sleep(3_000).then(leave)
      }
      if (signal.aborted) onAbort()
      else signal.addEventListener('abort', onAbort, { once: true })
      void time.sleep(ms).then(() => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      })
    })
  }

  #turnOf(parts: readonly AssistantPart[], finishReason: ModelTurn['entry']['finishReason']): ModelTurn {
    return { entry: { role: 'assistant', parts, provider: this.provider, model: this.id, finishReason, usage: USAGE } }
  }
}

function withoutCalls(parts: readonly AssistantPart[]): readonly AssistantPart[] {
  return parts.filter(({ type }) => type !== 'tool_call')
}
