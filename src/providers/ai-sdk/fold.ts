import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import { mergeJson } from '../../util/merge-json.js'
import { providerError } from '../http/errors.js'
import type { FoldOptions } from '../http/wire.js'
import { ReplyCalls } from './calls.js'
import { inputText, isOurCall } from './decode.js'
import { aiSdkError } from './error.js'
import { finishOf, isCut } from './finish.js'
import { listIn, stringIn } from './wire.js'
import type { AiSdkReply, Fields } from './wire.js'

/** A text or a thought that is coming. */
interface Block {
  readonly type: 'text' | 'reasoning'
  text: string
  providerMetadata?: JsonObject
}

/** Adds up the parts of a stream, and tells each piece as it comes. Passes over kinds of part that it does not know. */
export class StreamFold {
  readonly #onDelta: FoldOptions['onDelta']
  readonly #calls: ReplyCalls
  readonly #content: (Fields | Block)[] = []
  /** Blocks whose end has not come, by kind and id. */
  readonly #open = { text: new Map<unknown, Block>(), reasoning: new Map<unknown, Block>() }
  #finish: Fields | null = null
  #response: Fields = {}
  readonly #warnings: unknown[] = []

  constructor({ callIdFor, onDelta }: FoldOptions) {
    this.#calls = new ReplyCalls(callIdFor)
    this.#onDelta = onDelta
  }

  /** Whether the last part has come. */
  get isFinished(): boolean {
    return this.#finish !== null
  }

  /** Throws `provider_error` for an error that comes inside the stream. */
  add(part: unknown): void {
    if (!isObject(part)) return
    switch (part['type']) {
      case 'text-delta':
        return this.#extend('text', part)
      case 'reasoning-delta':
        return this.#extend('reasoning', part)
      case 'tool-input-delta':
        return this.#extendCall(part)
      case 'text-start':
      case 'text-end':
        return this.#note('text', part)
      case 'reasoning-start':
      case 'reasoning-end':
        return this.#note('reasoning', part)
      case 'tool-input-start':
        // What the provider runs itself is no call of ours.
        if (part['providerExecuted'] !== true) this.#calls.begin(part['id'], part['toolName'])
        return
      case 'tool-call':
        return this.#endCall(part)
      default:
        return this.#addOther(part)
    }
  }

  /** Throws `provider_error` when the stream stopped before its end. */
  end(): AiSdkReply {
    if (this.#finish === null) throw cut('its `finish` part')
    const { finishReason, usage, providerMetadata } = this.#finish
    if (isCut(finishReason)) throw cut('the API had said why the reply ended')
    this.#endCutCalls(finishReason)
    return {
      content: this.#content.map((part) => ({ ...part })),
      finishReason,
      usage,
      providerMetadata,
      response: this.#response,
      warnings: this.#warnings,
    }
  }

  #extend(kind: Block['type'], part: Fields): void {
    const { id, delta, providerMetadata } = part
    const block = this.#open[kind].get(id) ?? this.#begin(kind, id)
    if (providerMetadata !== undefined) addMetadata(block, providerMetadata)
    if (typeof delta !== 'string' || delta === '') return
    block.text += delta
    this.#onDelta?.({ kind: kind === 'text' ? 'text_delta' : 'reasoning_delta', text: delta })
  }

  /** The begin or the end of a block: what the provider says of it. */
  #note(kind: Block['type'], { type, id, providerMetadata }: Fields): void {
    const isEnd = type === `${kind}-end`
    const block = this.#open[kind].get(id) ?? (isEnd ? undefined : this.#begin(kind, id))
    if (block !== undefined) addMetadata(block, providerMetadata)
    if (isEnd) this.#open[kind].delete(id)
  }

  #begin(kind: Block['type'], id: unknown): Block {
    const block: Block = { type: kind, text: '' }
    this.#open[kind].set(id, block)
    this.#content.push(block)
    return block
  }

  #extendCall({ id, delta }: Fields): void {
    const call = this.#calls.find(id)
    if (call === undefined || typeof delta !== 'string' || delta === '') return
    call.input += delta
    this.#tellInput(delta, call)
  }

  #endCall(part: Fields): void {
    if (!isOurCall(part)) {
      this.#calls.forget(part['toolCallId'])
      this.#content.push(part)
      return
    }
    const call = this.#calls.close(part['toolCallId'], part['toolName'])
    if (call.input === '') this.#tellInput(inputText(part['input']), call)
    this.#content.push({ ...part, toolCallId: call.callId })
  }

  #tellInput(text: string, { callId, name }: { readonly callId: string; readonly name: string }): void {
    this.#onDelta?.({ kind: 'tool_input_delta', text, callId, ...(name !== '' && { toolName: name }) })
  }

  /** A reply that was stopped, at its limit or by a filter, may have a call without its end; one that is whole has none. */
  #endCutCalls(finish: unknown): void {
    if (this.#calls.left.length === 0) return
    if (finishOf(finish, true).finishReason === 'tool_calls') throw cut('the end of a call')
    for (const { callId, name, input } of this.#calls.left) {
      this.#content.push({ type: 'tool-call', toolCallId: callId, toolName: name, input })
    }
  }

  #addOther(part: Fields): void {
    switch (part['type']) {
      case 'finish':
        this.#finish = part
        return
      case 'response-metadata': {
        const told = Object.entries(part).filter(([name, value]) => name !== 'type' && value !== undefined)
        this.#response = { ...this.#response, ...Object.fromEntries(told) }
        return
      }
      case 'stream-start':
        this.#warnings.push(...listIn(part['warnings']))
        return
      case 'error':
        throw aiSdkError(part['error'], true)
    }
    if (CONTENT.has(stringIn(part['type']))) this.#content.push(part)
  }
}

/** Parts of a stream that are content, whole. */
const CONTENT = new Set(['file', 'source', 'tool-result', 'tool-approval-request', 'reasoning-file', 'custom'])

/** A later piece of metadata says more than an earlier one, or says it anew. */
function addMetadata(block: Block, metadata: unknown): void {
  if (!isObject(metadata)) return
  block.providerMetadata = mergeJson(block.providerMetadata ?? {}, metadata as JsonObject)
}

function cut(what: string): Error {
  return providerError(`The language model's stream ended before ${what}: the reply is not whole.`, { retryable: true })
}
