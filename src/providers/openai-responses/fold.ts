import { HarnessError } from '../../errors.js'
import { isObject } from '../../util/json.js'
import { errorFromBody } from '../errors.js'
import type { DecodedReply, FoldOptions, ReplyFold, WireChunk } from '../wire.js'
import { CallIds } from './call-ids.js'
import { decodeResponse, failureOf } from './decode.js'
import type { PlacedItem } from './decode.js'
import { stringOf } from './native.js'
import type { WireObject } from './native.js'
import { OutputItem } from './output-item.js'
import type { PieceKind } from './output-item.js'

/**
 * Adds up a streamed response. An item is taken from its `response.output_item.done`, else from the final response,
 * else from its deltas: compatible servers leave out the one or the other.
 */
export class ResponseFold implements ReplyFold {
  readonly #ids: CallIds
  readonly #onDelta: FoldOptions['onDelta']
  readonly #items = new Map<number, OutputItem>()
  #last: OutputItem | null = null
  #begun: WireObject = {}
  #final: WireObject | null = null

  constructor({ callIdFor, onDelta }: FoldOptions) {
    this.#ids = new CallIds(callIdFor)
    this.#onDelta = onDelta
  }

  add({ event, data }: WireChunk): void {
    if (!isObject(data)) return
    const type = stringOf(data['type']) || event
    const piece = type === null ? undefined : PIECES.get(type)
    if (piece !== undefined) {
      this.#itemOf(data).grow(piece, data, this.#onDelta)
      return
    }
    switch (type) {
      case 'response.created':
        this.#begun = responseOf(data)
        return
      case 'response.output_item.added':
        this.#open(data)
        return
      case 'response.output_item.done':
        this.#close(data)
        return
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        this.#conclude(type.slice('response.'.length), responseOf(data))
        return
      default:
        if (type === 'error' || isObject(data['error'])) throw errorFromBody(200, {}, errorBody(data))
    }
  }

  end(): DecodedReply {
    if (this.#final === null) {
      throw new HarnessError('provider_error', 'The stream ended before the response did.', { retryable: true })
    }
    const output: readonly unknown[] = Array.isArray(this.#final['output']) ? this.#final['output'] : []
    const items = this.#settled(output)
    const response = output.length > 0 ? this.#final : { ...this.#final, output: items.map(({ item }) => item) }
    return decodeResponse(response, items, this.#ids)
  }

  #open(data: WireObject): void {
    const item = data['item']
    if (!isObject(item)) return
    const index = indexIn(data)
    const known = index === undefined ? undefined : this.#items.get(index)
    // Announced twice, or a server that counts nothing and gives every item the same index.
    if (known !== undefined && !known.isOtherThan(item)) return
    this.#add(known === undefined ? index : undefined, item)
  }

  #close(data: WireObject): void {
    const item = data['item']
    if (isObject(item)) this.#itemOf(data, item).close(item, this.#onDelta)
  }

  #conclude(status: string, response: WireObject): void {
    const final = { ...this.#begun, status, ...response }
    const failure = failureOf(final)
    if (failure !== undefined) throw failure
    this.#final = final
  }

  /** The item that an event is about: by its index, else its id, else the one that was spoken of last. */
  #itemOf(data: WireObject, item: WireObject = {}): OutputItem {
    const index = indexIn(data)
    if (this.#last !== null && (index === undefined || this.#last.index === index)) {
      if (index !== undefined || this.#last.answersTo(data['item_id'] ?? item['id'])) return this.#last
    }
    const found = index === undefined ? this.#byId(data['item_id'] ?? item['id']) : this.#items.get(index)
    if (found === undefined) return this.#add(index, item)
    this.#last = found
    return found
  }

  #byId(id: unknown): OutputItem | undefined {
    for (const item of this.#items.values()) if (item.answersTo(id)) return item
    return undefined
  }

  #add(index: number | undefined, item: WireObject): OutputItem {
    const added = new OutputItem(index ?? this.#nextIndex(), item, this.#ids)
    this.#items.set(added.index, added)
    this.#last = added
    return added
  }

  #nextIndex(): number {
    return Math.max(-1, ...this.#items.keys()) + 1
  }

  #settled(output: readonly unknown[]): readonly PlacedItem[] {
    const told = [...this.#items.values()].map((item) => ({
      position: item.index,
      item: item.settle(output[item.index], this.#onDelta),
    }))
    const untold = output.flatMap((item, position) => (this.#items.has(position) ? [] : [{ position, item }]))
    return [...told, ...untold].sort((left, right) => left.position - right.position)
  }
}
