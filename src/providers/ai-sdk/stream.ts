import { isObject, mergeJson } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { providerError } from '../http/provider-errors.js'
import type { ReplyFoldOptions } from '../http/wire-format.js'
import { argumentsText, ReplyCallIds } from '../wire/call-ids.js'
import { withoutRepeatedCalls } from '../wire/repeated-calls.js'
import { listIn, stringIn } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import { isOwnCall, replyFinish, isCut, isCompaction, partCall } from './reply.js'
import { aiSdkError } from './transport.js'
import type { AiSdkReply } from './reply.js'

/** A text or reasoning block in progress. */
interface Block {
  readonly type: 'text' | 'reasoning'
  text: string
  providerMetadata?: JsonObject
}

/** A call in progress. */
interface OpenCall {
  /** Unique in the reply. */
  callId: string
  /** Its provider's id is known: it may be a repetition, so it is emitted at the end. */
  readonly isAgain: boolean
  readonly name: string
  input: string
}

/** Adds up the parts of a stream, and emits each piece. Ignores unknown kinds of part. */
export class StreamFold {
  readonly #onDelta: ReplyFoldOptions['onDelta']
  readonly #ids: ReplyCallIds
  readonly #content: (WireFields | Block)[] = []
  /** Calls without their end, by the provider's id. */
  readonly #openCalls = new Map<unknown, OpenCall>()
  /** Complete calls, by their parts. */
  readonly #calls = new Map<unknown, OpenCall>()
  /** Blocks without their end, by kind and id. */
  readonly #open = { text: new Map<unknown, Block>(), reasoning: new Map<unknown, Block>() }
  #finish: WireFields | null = null
  #response: WireFields = {}
  readonly #warnings: unknown[] = []

  constructor({ callIdFor, onDelta }: ReplyFoldOptions) {
    this.#ids = new ReplyCallIds(callIdFor)
    this.#onDelta = onDelta
  }

  /** Throws `provider_error` for an error inside the stream. */
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
        return this.#beginCall(part)
      case 'tool-call':
        return this.#endCall(part)
      default:
        return this.#addOther(part)
    }
  }

  /** Throws `provider_error` if the stream stopped before its end. */
  end(): AiSdkReply {
    if (this.#finish === null) throw cutStreamError('its `finish` part')
    const { finishReason, usage, providerMetadata } = this.#finish
    if (isCut(finishReason)) throw cutStreamError('the API sent a finish reason')
    this.#endCutCalls(finishReason)
    return {
      content: withoutRepeatedCalls(this.#content, partCall, (whole, announced) => {
        const [call, other] = [this.#calls.get(whole), this.#calls.get(announced)]
        if (call !== undefined && other !== undefined) call.callId = other.callId
      }).map((part) => this.#finished(part)),
      finishReason,
      usage,
      providerMetadata,
      response: this.#response,
      warnings: this.#warnings,
    }
  }

  #extend(kind: Block['type'], part: WireFields): void {
    const { id, delta, providerMetadata } = part
    const block = this.#open[kind].get(id) ?? this.#begin(kind, id)
    if (providerMetadata !== undefined) addMetadata(block, providerMetadata)
    if (typeof delta !== 'string' || delta === '') return
    block.text += delta
    if (isCompaction(block.providerMetadata)) return
    this.#onDelta?.({ kind: kind === 'text' ? 'text_delta' : 'reasoning_delta', text: delta })
  }

  /** The metadata at the beginning or the end of a block. */
  #note(kind: Block['type'], { type, id, providerMetadata }: WireFields): void {
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

  /** Calls that the provider executes itself are not calls of the harness. */
  #beginCall({ id, toolName, providerExecuted }: WireFields): void {
    if (providerExecuted !== true && !this.#openCalls.has(id)) this.#openCalls.set(id, this.#newCall(id, toolName))
  }

  #newCall(id: unknown, name: unknown): OpenCall {
    const isAgain = this.#ids.has(stringIn(id))
    return { callId: this.#ids.take(id), isAgain, name: stringIn(name), input: '' }
  }

  /** A part of the reply; a call has the id that is unique in it. */
  #finished(part: WireFields | Block): WireFields {
    const call = this.#calls.get(part)
    const fields: WireFields = { ...part }
    if (call?.isAgain === true) this.#emitInput(argumentsText(fields['input']), call)
    return call === undefined ? fields : { ...fields, toolCallId: call.callId }
  }

  #extendCall({ id, delta }: WireFields): void {
    const call = this.#openCalls.get(id)
    if (call === undefined || typeof delta !== 'string' || delta === '') return
    call.input += delta
    if (!call.isAgain) this.#emitInput(delta, call)
  }

  #endCall(part: WireFields): void {
    const { toolCallId: id, toolName } = part
    const open = this.#openCalls.get(id)
    this.#openCalls.delete(id)
    if (!isOwnCall(part)) {
      this.#content.push(part)
      return
    }
    const call = open ?? this.#newCall(id, toolName)
    if (call.input === '' && !call.isAgain) this.#emitInput(argumentsText(part['input']), call)
    this.#calls.set(part, call)
    this.#content.push(part)
  }

  #emitInput(text: string, { callId, name }: OpenCall): void {
    this.#onDelta?.({ kind: 'tool_input_delta', text, callId, ...(name !== '' && { toolName: name }) })
  }

  /** A reply that was stopped at its limit or by a filter may have a call without its end; a complete reply may not. */
  #endCutCalls(finish: unknown): void {
    if (this.#openCalls.size === 0) return
    if (replyFinish(finish, true).finishReason === 'tool_calls') throw cutStreamError('the end of a call')
    for (const [id, call] of this.#openCalls) {
      const part = { type: 'tool-call', toolCallId: id, toolName: call.name, input: call.input }
      this.#calls.set(part, call)
      this.#content.push(part)
    }
  }

  #addOther(part: WireFields): void {
    switch (part['type']) {
      case 'finish':
        this.#finish = part
        return
      case 'response-metadata': {
        const known = Object.entries(part).filter(([name, value]) => name !== 'type' && value !== undefined)
        this.#response = { ...this.#response, ...Object.fromEntries(known) }
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

/** Parts of a stream that are complete content. */
const CONTENT = new Set(['file', 'source', 'tool-result', 'tool-approval-request', 'reasoning-file', 'custom'])

/** Later metadata adds to earlier metadata, or replaces it. */
function addMetadata(block: Block, metadata: unknown): void {
  if (!isObject(metadata)) return
  block.providerMetadata = mergeJson(block.providerMetadata ?? {}, metadata as JsonObject)
}

function cutStreamError(event: string): Error {
  return providerError(`The language model's stream ended before ${event}: the reply is incomplete.`, {
    retryable: true,
    failure: 'connection',
  })
}
