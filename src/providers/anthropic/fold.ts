import { HarnessError } from '../../contracts/errors.js'
import type { AssistantPart } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import { errorFromBody } from '../http/errors.js'
import type { DecodedReply, FoldOptions, ReplyFold, WireChunk } from '../http/wire.js'
import { ReplyCallIds } from '../wire/calls.js'
import type { Fields } from '../wire/read.js'
import { BlockFold } from './block-fold.js'
import { isError, partOf, replyOf } from './decode.js'

/** Adds up a streamed message, and decodes the result like a whole one. */
export class MessageFold implements ReplyFold {
  readonly #onDelta: FoldOptions['onDelta']
  readonly #ids: ReplyCallIds
  #message: Fields | null = null
  #usage: Fields = {}
  readonly #blocks: BlockFold[] = []
  /** By the index of the events; a gateway may use one twice. */
  readonly #byIndex = new Map<unknown, BlockFold>()
  #calls = 0
  #isComplete = false

  constructor({ callIdFor, onDelta }: FoldOptions) {
    this.#onDelta = onDelta
    this.#ids = new ReplyCallIds(callIdFor)
  }

  add({ event, data }: WireChunk): void {
    if (event === 'error' || isError(data)) throw errorFromBody(200, {}, data)
    if (this.#isComplete || !isObject(data)) return
    switch (data['type']) {
      case 'content_block_delta':
        this.#extend(data['index'], data['delta'])
        return
      case 'content_block_start':
        this.#begin(data['index'], data['content_block'])
        return
      case 'content_block_stop':
        this.#byIndex.get(data['index'])?.close()
        return
      case 'message_start':
        this.#start(data['message'])
        return
      case 'message_delta':
        this.#amend(data)
        return
      case 'message_stop':
        this.#isComplete = true
    }
  }

  end(): DecodedReply {
    if (this.#message === null || !this.#isComplete) {
      throw brokenStream('Anthropic ended its stream before `message_stop`: the reply is incomplete.')
    }
    const content: Fields[] = []
    const parts: AssistantPart[] = []
    for (const block of this.#blocks) {
      block.close()
      const finished = block.finish()
      const part = partOf(finished, block.call)
      content.push(finished)
      if (part !== null) parts.push(part)
    }
    return replyOf({ ...this.#message, content, usage: this.#usage }, parts)
  }

  #start(message: unknown): void {
    if (!isObject(message)) return
    if (this.#message !== null) {
      if (this.#message['id'] === message['id']) return
      throw brokenStream('Anthropic began a second message within the stream of one.')
    }
    this.#message = message
    if (isObject(message['usage'])) this.#usage = message['usage']
  }

  /** `message_delta` has the stop reason, and the usage so far. */
  #amend({ delta, usage }: Fields): void {
    this.#message = { ...this.#message, ...(isObject(delta) ? delta : {}) }
    this.#count(usage)
  }

  /** Counts are totals: a later one replaces an earlier one, unless it is null. */
  #count(usage: unknown): void {
    if (!isObject(usage)) return
    const known = Object.entries(usage).filter(([, value]) => value !== null)
    this.#usage = { ...this.#usage, ...Object.fromEntries(known) }
  }

  #begin(index: unknown, start: unknown): void {
    if (!isObject(start) || this.#byIndex.get(index)?.isBegunBy(start) === true) return
    this.#add(index, start)
  }

  #extend(index: unknown, delta: unknown): void {
    if (!isObject(delta)) return
    const block = this.#byIndex.get(index) ?? this.#unannounced(index, delta)
    block?.extend(delta)
  }

  /** A block without a start, which some gateways omit. */
  #unannounced(index: unknown, { type }: Fields): BlockFold | undefined {
    if (type === 'text_delta') return this.#add(index, { type: 'text', text: '' })
    if (type === 'thinking_delta') return this.#add(index, { type: 'thinking', thinking: '' })
    return undefined
  }

  /** The final id of a call of the harness; empty for any other block. */
  #callIdOf({ type, id }: Fields): string {
    return type === 'tool_use' ? this.#ids.take(id, this.#calls++) : ''
  }

  #add(index: unknown, start: Fields): BlockFold {
    this.#byIndex.get(index)?.close()
    const block = new BlockFold(start, this.#callIdOf(start), this.#onDelta)
    this.#byIndex.set(index, block)
    this.#blocks.push(block)
    return block
  }
}

/** The stream broke: a retry may succeed. */
function brokenStream(message: string): HarnessError {
  return new HarnessError('provider_error', message, { retryable: true })
}
