import { HarnessError } from '../../contracts/errors.js'
import type { AssistantPart } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import { errorFromBody } from '../http/errors.js'
import type { DecodedReply, FoldOptions, ReplyFold, WireChunk } from '../http/wire.js'
import { CallIds } from './call-ids.js'
import { decodedReply, failureOf } from './decode.js'
import { listOf, stringOf } from './native.js'
import type { WireObject } from './native.js'
import { OutputItem } from './output-item.js'
import type { PieceKind } from './output-item.js'

/**
 * Adds up a streamed response. An item is what its `response.output_item.done` says, else what stands in the final
 * response, else what its deltas add up to: compatible servers leave out the one or the other.
 */
export class ResponseFold implements ReplyFold {
  readonly #onDelta: FoldOptions['onDelta']
  readonly #ids: CallIds
  readonly #items: OutputItem[] = []
  readonly #byIndex = new Map<number, OutputItem>()
  /** The item that the last event was about. */
  #current: OutputItem | null = null
  #begun: WireObject = {}
  #final: WireObject | null = null

  constructor({ callIdFor, onDelta }: FoldOptions) {
    this.#onDelta = onDelta
    this.#ids = new CallIds(callIdFor)
  }

  add({ event, data }: WireChunk): void {
    if (!isObject(data)) return
    const type = stringOf(data['type']) || stringOf(event)
    const piece = PIECES.get(type)
    const whole = WHOLES.get(type)
    if (piece !== undefined) this.#grow(piece, data)
    else if (whole !== undefined) this.#complete(whole, data)
    else this.#hear(type, data)
  }

  end(): DecodedReply {
    if (this.#final === null) {
      const message = 'The stream ended before the event that completes the response.'
      throw new HarnessError('provider_error', message, { retryable: true })
    }
    const output = listOf(this.#final['output'])
    const parts = this.#parts(output)
    const items = this.#items.map(({ item }) => item)
    return decodedReply(output.length > 0 ? this.#final : { ...this.#final, output: items }, parts)
  }

  #grow([kind, indexField]: readonly [PieceKind, string], data: WireObject): void {
    const text = data['delta']
    if (typeof text !== 'string' || text === '') return
    this.#itemOf(data).grow(kind, numberOf(data[indexField]) ?? 0, text)
  }

  /** What the pieces of a text should add up to, for a server that sent none. */
  #complete([kind, indexField, textField]: readonly [PieceKind, string, string], data: WireObject): void {
    const text = data[textField]
    if (typeof text !== 'string' || text === '') return
    const index = numberOf(data['output_index'])
    const isKnown = index === undefined ? this.#current !== null : this.#byIndex.has(index)
    // An item that was never spoken of may be one that is there under another index.
    if (isKnown || this.#items.length === 0) this.#itemOf(data).complete(kind, numberOf(data[indexField]) ?? 0, text)
  }

  #hear(type: string, data: WireObject): void {
    switch (type) {
      case 'response.created':
        this.#begun = responseOf(data)
        return
      case 'response.output_item.added':
        if (isObject(data['item'])) this.#announce(data, data['item'])
        return
      case 'response.output_item.done':
        if (isObject(data['item'])) this.#itemOf(data, data['item']).close(data['item'])
        return
      default:
        if (ENDINGS.has(type)) this.#conclude(type, responseOf(data))
        else if (type === 'error' || (type === '' && isObject(data['error']))) throw errorFromBody(200, {}, data)
    }
  }

  #announce(data: WireObject, item: WireObject): void {
    const index = numberOf(data['output_index'])
    const known = index === undefined ? undefined : this.#byIndex.get(index)
    // Twice the same is one item; another one in the place of one that is done comes from a server that does not count.
    if (known === undefined || (known.isDone && known.item['id'] !== item['id'])) this.#open(index, item)
    else this.#current = known
  }

  /** The item that an event is about: by its index, else by its id, else the one that was spoken of last. */
  #itemOf(data: WireObject, item: WireObject = {}): OutputItem {
    const index = numberOf(data['output_index'])
    if (index === undefined) {
      const id = stringOf(data['item_id']) || stringOf(item['id'])
      const named = id === '' ? undefined : this.#items.find((each) => each.item['id'] === id)
      return named ?? this.#current ?? this.#open(undefined, item)
    }
    return this.#byIndex.get(index) ?? this.#open(index, item)
  }

  #open(index: number | undefined, item: WireObject): OutputItem {
    const opened = new OutputItem(index ?? this.#items.length, item, { ids: this.#ids, onDelta: this.#onDelta })
    this.#items.push(opened)
    this.#byIndex.set(opened.index, opened)
    this.#current = opened
    return opened
  }

  #conclude(event: string, response: WireObject): void {
    const own = stringOf(response['status'])
    // Some servers send the end with the status of the begin.
    const status = ENDINGS.has(`response.${own}`) ? own : event.slice('response.'.length)
    const final = { ...this.#begun, ...response, status }
    const failure = failureOf(final)
    if (failure !== undefined) throw failure
    this.#final = final
  }

  /** The parts of all items, in the order of the output; items that only the final response has are there too. */
  #parts(output: readonly WireObject[]): readonly AssistantPart[] {
    const untold = new Map(output.entries())
    const placed = this.#items.map((item) => {
      const place = placeOf(item, untold) ?? -1
      const final = untold.get(place)
      untold.delete(place)
      return { index: place < 0 ? item.index : place, parts: item.parts(final) }
    })
    for (const [index, final] of untold) {
      placed.push({ index, parts: new OutputItem(index, {}, { ids: this.#ids, onDelta: this.#onDelta }).parts(final) })
    }
    return placed.sort((left, right) => left.index - right.index).flatMap(({ parts }) => parts)
  }
}

/** Events that bring a piece of an item, and the field that counts the pieces. */
const PIECES: ReadonlyMap<string, readonly [PieceKind, string]> = new Map([
  ['response.output_text.delta', ['text', 'content_index']],
  ['response.refusal.delta', ['refusal', 'content_index']],
  ['response.reasoning_summary_text.delta', ['summary', 'summary_index']],
  ['response.reasoning_text.delta', ['reasoning', 'content_index']],
  ['response.function_call_arguments.delta', ['arguments', '']],
  ['response.custom_tool_call_input.delta', ['input', '']],
])

/** Events that sum up the pieces, the field that counts them, and the one that holds the text. */
const WHOLES: ReadonlyMap<string, readonly [PieceKind, string, string]> = new Map([
  ['response.output_text.done', ['text', 'content_index', 'text']],
  ['response.refusal.done', ['refusal', 'content_index', 'refusal']],
  ['response.reasoning_summary_text.done', ['summary', 'summary_index', 'text']],
  ['response.reasoning_text.done', ['reasoning', 'content_index', 'text']],
  ['response.function_call_arguments.done', ['arguments', '', 'arguments']],
  ['response.custom_tool_call_input.done', ['input', '', 'input']],
])

/** Events that end a response; what follows their first word is its status. */
const ENDINGS: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'response.cancelled',
])

/** Where the final output has this item: in its place, or under its id. */
function placeOf({ index, item }: OutputItem, output: ReadonlyMap<number, WireObject>): number | undefined {
  const there = output.get(index)
  if (there !== undefined && (item['type'] === undefined || there['type'] === item['type'])) return index
  const id = stringOf(item['id'])
  return id === '' ? undefined : [...output].find(([, each]) => each['id'] === id)?.[0]
}

function responseOf(data: WireObject): WireObject {
  return isObject(data['response']) ? data['response'] : {}
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
