import type { AssistantPart, TokenUsage } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import type { ModelDelta } from '#core/model-session.js'
import { isObject } from '#util/json.js'
import { errorFromBody } from '../http/provider-errors.js'
import type { DecodedReply, ReplyFoldOptions, ReplyFold, WireChunk } from '../http/wire-format.js'
import { argumentsObject, argumentsText } from '../wire/call-ids.js'
import { StreamedCall, StreamedCalls } from '../wire/repeated-calls.js'
import type { WireFields } from '../wire/wire-fields.js'
import { objectsIn, stringIn, without } from '../wire/wire-fields.js'
import { isError, blockPart, replyOf, tokenUsage } from './reply.js'

/** Adds up a streamed message, and decodes the result like a whole one. */
export class MessagesReplyFold implements ReplyFold {
  readonly #onDelta: ReplyFoldOptions['onDelta']
  readonly #calls: StreamedCalls<StreamedCall>
  #message: WireFields | null = null
  #usage: WireFields = {}
  readonly #blocks: BlockFold[] = []
  /** By the index of the events; a gateway may use one twice. */
  readonly #byIndex = new Map<unknown, BlockFold>()
  #hasStopped = false

  constructor({ callIdFor, onDelta }: ReplyFoldOptions) {
    this.#onDelta = onDelta
    this.#calls = new StreamedCalls(callIdFor, (text, callId, toolName) =>
      onDelta?.({ kind: 'tool_input_delta', text, callId, ...(toolName !== '' && { toolName }) }),
    )
  }

  get isComplete(): boolean {
    return this.#hasStopped || stringIn(this.#message?.['stop_reason']) !== ''
  }

  get usage(): TokenUsage {
    return tokenUsage(this.#usage)
  }

  add({ event, data }: WireChunk): void {
    if (event === 'error' || isError(data)) throw errorFromBody(200, {}, data)
    if (this.#hasStopped || !isObject(data)) return
    const { type, index, delta, content_block: start } = data
    switch (type) {
      case 'content_block_delta':
        if (isObject(delta)) this.#extend(index, delta)
        return
      case 'content_block_start':
        if (isObject(start) && this.#byIndex.get(index)?.isBegunBy(start) !== true) this.#begin(index, start)
        return
      case 'content_block_stop':
        this.#byIndex.get(index)?.close()
        return
      case 'message_start':
        if (isObject(data['message'])) this.#start(data['message'])
        return
      case 'message_delta':
        this.#message = { ...this.#message, ...(isObject(delta) ? delta : {}) }
        if (isObject(data['usage'])) this.#count(data['usage'])
        return
      case 'message_stop':
        this.#hasStopped = true
    }
  }

  end(): DecodedReply {
    if (this.#message === null || !this.isComplete) {
      throw brokenStream('Anthropic ended its stream before `message_stop`: the reply is incomplete.')
    }
    const content: WireFields[] = []
    const parts: AssistantPart[] = []
    for (const block of this.#blocks) block.close()
    const calls = new Set(this.#calls.end())
    for (const block of this.#blocks) {
      const { call } = block
      if (call !== null && !calls.has(call)) continue
      const finished = block.finish()
      const part = blockPart(finished, call && { callId: this.#calls.idOf(call), arguments: call.text || '{}' })
      content.push(finished)
      if (part !== null) parts.push(part)
    }
    return replyOf({ ...this.#message, content, usage: this.#usage }, parts)
  }

  #start(message: WireFields): void {
    if (this.#message === null) {
      this.#message = message
      if (isObject(message['usage'])) this.#usage = message['usage']
      // A reply that continues in a container may begin with whole blocks.
      for (const [index, block] of objectsIn(message['content']).entries()) this.#begin(index, block)
    } else if (this.#message['id'] !== message['id']) {
      throw brokenStream('Anthropic began a second message within the stream of one.')
    }
  }

  /** Counts are totals: a later one replaces an earlier one, unless it is null. */
  #count(usage: WireFields): void {
    const known = Object.entries(usage).filter(([, value]) => value !== null)
    this.#usage = { ...this.#usage, ...Object.fromEntries(known) }
  }

  #extend(index: unknown, delta: WireFields): void {
    let block = this.#byIndex.get(index)
    // Some gateways omit the start of a block.
    if (block === undefined && delta['type'] === 'text_delta') block = this.#begin(index, { type: 'text' })
    if (block === undefined && delta['type'] === 'thinking_delta') block = this.#begin(index, { type: 'thinking' })
    // Others number the pieces of a call.
    if (block === undefined && delta['type'] === 'input_json_delta')
      block = this.#blocks.findLast(({ call }) => call !== null)
    block?.extend(delta)
  }

  #begin(index: unknown, start: WireFields): BlockFold {
    this.#byIndex.get(index)?.close()
    const isCall = start['type'] === 'tool_use'
    const call = isCall ? this.#calls.begin(callOf(start)) : null
    const grow = (text: string): void => {
      if (call !== null) this.#calls.grow(call, text)
    }
    const block = new BlockFold(start, call, { onDelta: this.#onDelta, grow })
    this.#byIndex.set(index, block)
    this.#blocks.push(block)
    return block
  }
}

/** The stream broke: a retry may succeed. */
function brokenStream(message: string): HarnessError {
  return new HarnessError('provider_error', message, { retryable: true, failure: 'connection' })
}

interface Listeners {
  readonly onDelta: ((delta: ModelDelta) => void) | undefined
  /** More of the arguments of a call. */
  readonly grow: (text: string) => void
}

/** Adds up one content block of a stream, and emits each piece. */
class BlockFold {
  readonly #start: WireFields
  /** A call of the harness; null for any other block. */
  readonly call: StreamedCall | null
  readonly #grow: (text: string) => void
  readonly #onDelta: ((delta: ModelDelta) => void) | undefined
  /** Text of a text block or of a thinking block. */
  #text = ''
  #input = ''
  #signature: string
  readonly #citations: unknown[]
  #other: WireFields = {}
  #isTouched = false

  constructor(start: WireFields, call: StreamedCall | null, { onDelta, grow }: Listeners) {
    this.#start = start
    this.#onDelta = onDelta
    this.call = call
    this.#grow = grow
    this.#signature = stringIn(start['signature'])
    this.#citations = Array.isArray(start['citations']) ? [...(start['citations'] as readonly unknown[])] : []
    if (start['type'] === 'text') this.#emit('text_delta', stringIn(start['text']))
    if (start['type'] === 'thinking') this.#emit('reasoning_delta', stringIn(start['thinking']))
  }

  /** True if `start` repeats the start of this block. */
  isBegunBy(start: WireFields): boolean {
    if (start['type'] !== this.#start['type'] || start['id'] !== this.#start['id']) return false
    return !this.#isTouched || start['id'] !== undefined
  }

  extend(delta: WireFields): void {
    this.#isTouched = true
    const { type } = this.#start
    switch (delta['type']) {
      case 'text_delta':
        if (type === 'text') this.#emit('text_delta', stringIn(delta['text']))
        else this.#keep(delta)
        return
      case 'thinking_delta':
        if (type === 'thinking') this.#emit('reasoning_delta', stringIn(delta['thinking']))
        else this.#keep(delta)
        return
      case 'input_json_delta':
        this.#addInput(stringIn(delta['partial_json']))
        return
      case 'signature_delta':
        this.#signature += stringIn(delta['signature'])
        return
      case 'citations_delta':
        this.#citations.push(delta['citation'])
        return
      default:
        this.#keep(delta)
    }
  }

  /** The block is complete. Input that came with the start is emitted now if no piece of it was. */
  close(): void {
    const { input } = this.#start
    if (this.call === null || this.#input !== '' || !isObject(input) || Object.keys(input).length === 0) return
    this.#addInput(argumentsText(input))
  }

  /** The block as in an unstreamed reply. */
  finish(): WireFields {
    const block = { ...this.#start, ...this.#other }
    switch (this.#start['type']) {
      case 'text':
        return { ...block, text: this.#text, ...(this.#citations.length > 0 && { citations: this.#citations }) }
      case 'thinking':
        return { ...block, thinking: this.#text, signature: this.#signature }
      default: {
        const input = this.call?.text ?? this.#input
        return input === '' ? block : { ...block, input: argumentsObject(input) }
      }
    }
  }

  #emit(kind: 'text_delta' | 'reasoning_delta', text: string): void {
    if (text === '') return
    this.#text += text
    this.#onDelta?.({ kind, text })
  }

  /** A piece of an unknown field. */
  #keep(delta: WireFields): void {
    const pieces = Object.entries(without(delta, 'type'))
    const sums = pieces.map(
      ([name, piece]) => [name, addedDeltas(this.#other[name] ?? this.#start[name], piece)] as const,
    )
    this.#other = { ...this.#other, ...Object.fromEntries(sums) }
  }

  #addInput(text: string): void {
    if (text === '') return
    this.#input += text
    this.#grow(text)
  }
}

function callOf(start: WireFields): StreamedCall {
  return Object.assign(new StreamedCall(), { id: stringIn(start['id']), name: stringIn(start['name']) })
}

/** The sum of two pieces: strings and lists are appended; any other value is replaced. */
function addedDeltas(earlier: unknown, later: unknown): unknown {
  if (typeof earlier === 'string' && typeof later === 'string') return earlier + later
  if (Array.isArray(earlier) && Array.isArray(later)) return [...(earlier as unknown[]), ...(later as unknown[])]
  return later
}
