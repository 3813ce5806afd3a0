import type { TokenUsage } from '../../contracts/entry.js'
import type { ModelDelta } from '../../contracts/model.js'
import { isObject } from '../../util/json.js'
import { errorFromBody } from '../http/errors.js'
import type { DecodedReply, FoldOptions, ReplyFold, WireChunk } from '../http/wire.js'
import { isFilled, objectsIn, stringIn, without } from '../wire/read.js'
import type { Fields } from '../wire/read.js'
import { CallsFold } from './calls-fold.js'
import { ContentFold } from './content-fold.js'
import { cutReply, decodeReply, rejectError, rejectErrorIn, usageOf } from './reply.js'
import { mergedPieces } from './merge-pieces.js'
import { ReasoningFold } from './reasoning-fold.js'

/** Adds up the chunks of a stream to a reply, which is then decoded like a whole one. */
export class ChatFold implements ReplyFold {
  readonly #provider: string
  readonly #content: ContentFold
  readonly #reasoning: ReasoningFold
  readonly #calls: CallsFold
  /** A call of the old form, which has no id. */
  readonly #oldCall: CallsFold
  readonly #refusal: string[] = []
  /** Pieces of other fields, by name. */
  readonly #others = new Map<string, unknown[]>()
  #head: Fields = {}
  #usage: unknown = null
  #finish: Fields = {}
  #hasChoice = false
  #hasDelta = false
  #isDone = false

  constructor(provider: string, { callIdFor, onDelta }: FoldOptions) {
    const emit = (kind: ModelDelta['kind']) => (text: string) => onDelta?.({ kind, text })
    const emitCall = (text: string, callId: string, toolName: string) =>
      onDelta?.({ kind: 'tool_input_delta', text, callId, ...(toolName !== '' && { toolName }) })
    this.#provider = provider
    this.#content = new ContentFold(emit('text_delta'), emit('reasoning_delta'))
    this.#reasoning = new ReasoningFold(emit('reasoning_delta'))
    this.#calls = new CallsFold(callIdFor, emitCall)
    this.#oldCall = new CallsFold(callIdFor, emitCall)
  }

  get usage(): TokenUsage {
    return usageOf(this.#usage)
  }

  add({ event, data }: WireChunk): void {
    if (data === null) {
      this.#isDone = true
      return
    }
    if (event === 'error') throw errorFromBody(200, {}, data)
    rejectError(data)
    if (!isObject(data)) return
    this.#addHead(data)
    for (const choice of objectsIn(data['choices'])) {
      if ((choice['index'] ?? 0) === 0) this.#addChoice(choice)
    }
  }

  end(): DecodedReply {
    if (this.#finish['finish_reason'] === undefined && !(this.#isDone && this.#hasChoice)) throw cutReply()
    const calls = this.#calls.value()
    const ids = calls.length > 0 ? this.#calls.end() : this.#oldCall.end()
    const choice = { index: 0, message: this.#message(calls), ...this.#finish }
    const reply = { ...this.#head, object: 'chat.completion', choices: [choice], usage: this.#usage }
    return decodeReply(reply, this.#provider, (_id, index) => ids[index] ?? '')
  }

  #message(calls: readonly unknown[]): Fields {
    const [old] = this.#oldCall.value()
    return {
      role: 'assistant',
      content: this.#content.value(),
      ...this.#reasoning.value(),
      ...(this.#refusal.length > 0 && { refusal: this.#refusal.join('') }),
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(old !== undefined && { function_call: old['function'] }),
      ...Object.fromEntries([...this.#others].map(([name, pieces]) => [name, mergedPieces(pieces)])),
    }
  }

  /** The fields that all chunks repeat, from the first chunk with an id and a model; and the last usage. */
  #addHead(data: Fields): void {
    if (stringIn(this.#head['id']) === '' || stringIn(this.#head['model']) === '') {
      this.#head = { ...this.#head, ...without(data, 'choices', 'usage', 'object') }
    }
    const { usage, x_groq: groq } = data
    if (isFilled(usage)) this.#usage = usage
    if (!isObject(groq)) return
    rejectErrorIn(groq)
    if (!isFilled(usage) && isFilled(groq['usage'])) this.#usage = groq['usage']
  }

  #addChoice(choice: Fields): void {
    this.#hasChoice = true
    rejectErrorIn(choice)
    const { delta, message } = choice
    if (isObject(delta)) this.#addDelta(delta)
    // A whole message repeats the deltas, unless there were none.
    else if (isObject(message) && !this.#hasDelta) this.#addDelta(message)
    if (stringIn(choice['finish_reason']) !== '') {
      const { finish_reason, native_finish_reason } = choice
      this.#finish = { finish_reason, ...(native_finish_reason !== undefined && { native_finish_reason }) }
    }
    if (isFilled(choice['usage'])) this.#usage = choice['usage']
  }

  #keep(name: string, piece: unknown): void {
    const pieces = this.#others.get(name)
    if (pieces === undefined) this.#others.set(name, [piece])
    else pieces.push(piece)
  }

  #addDelta(delta: Fields): void {
    this.#hasDelta = true
    for (const name in delta) {
      const value = delta[name]
      if (value === null || value === '') continue
      switch (name) {
        case 'content':
          this.#content.add(value)
          break
        case 'reasoning_content':
        case 'reasoning':
        case 'reasoning_details':
          this.#reasoning.add(name, value, delta)
          break
        case 'tool_calls':
          this.#calls.add(value)
          break
        case 'function_call':
          this.#oldCall.add([{ index: 0, function: value }])
          break
        case 'refusal':
          if (typeof value === 'string') this.#refusal.push(value)
          break
        default:
          if (isFilled(value)) this.#keep(name, value)
      }
    }
  }
}
