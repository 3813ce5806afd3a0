import { HarnessError } from '../../contracts/errors.js'
import type { AssistantPart, TokenUsage } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import { errorFromBody } from '../http/errors.js'
import type { DecodedReply, FoldOptions, ReplyFold, WireChunk } from '../http/wire.js'
import { ReplyCallIds } from '../wire/calls.js'
import type { Fields } from '../wire/read.js'
import { BlockFold } from './block-fold.js'
import { isError, partOf, replyOf, tokenUsage } from './reply.js'

/** Adds up a streamed message, and decodes the result like a whole one. */
export class MessageFold implements ReplyFold {
  readonly #onDelta: FoldOptions['onDelta']
  readonly #ids: ReplyCallIds
  #message: Fields | null = null
  #usage: Fields = {}
  readonly #blocks: BlockFold[] = []
  /** By the index of the events; a gateway may use one twice. */
  readonly #byIndex = new Map<unknown, BlockFold>()
  #isComplete = false

  constructor({ callIdFor, onDelta }: FoldOptions) {
    this.#onDelta = onDelta
    this.#ids = new ReplyCallIds(callIdFor)
  }

  get usage(): TokenUsage {
    return tokenUsage(this.#usage)
  }

  add({ event, data }: WireChunk): void {
    if (event === 'error' || isError(data)) throw errorFromBody(200, {}, data)
    if (this.#isComplete || !isObject(data)) return
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

  #start(message: Fields): void {
    if (this.#message === null) {
      this.#message = message
      if (isObject(message['usage'])) this.#usage = message['usage']
    } else if (this.#message['id'] !== message['id']) {
      throw brokenStream('Anthropic began a second message within the stream of one.')
    }
  }

  /** Counts are totals: a later one replaces an earlier one, unless it is null. */
  #count(usage: Fields): void {
    const known = Object.entries(usage).filter(([, value]) => value !== null)
    this.#usage = { ...this.#usage, ...Object.fromEntries(known) }
  }

  #extend(index: unknown, delta: Fields): void {
    let block = this.#byIndex.get(index)
    // Some gateways omit the start of a block.
    if (block === undefined && delta['type'] === 'text_delta') block = this.#begin(index, { type: 'text' })
    if (block === undefined && delta['type'] === 'thinking_delta') block = this.#begin(index, { type: 'thinking' })
    block?.extend(delta)
  }

  #begin(index: unknown, start: Fields): BlockFold {
    this.#byIndex.get(index)?.close()
    const callId = start['type'] === 'tool_use' ? this.#ids.take(start['id']) : ''
    const block = new BlockFold(start, callId, this.#onDelta)
    this.#byIndex.set(index, block)
    this.#blocks.push(block)
    return block
  }
}

/** The stream broke: a retry may succeed. */
function brokenStream(message: string): HarnessError {
  return new HarnessError('provider_error', message, { retryable: true })
}
