import { HarnessError } from '../../contracts/errors.js'
import type { AssistantPart } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import { errorFromBody } from '../http/errors.js'
import type { DecodedReply, FoldOptions, ReplyFold, WireChunk } from '../http/wire.js'
import { ReplyCallIds } from '../wire/calls.js'
import { objectsIn, stringIn } from '../wire/read.js'
import type { Fields } from '../wire/read.js'
import { decodedReply, failureOf } from './reply.js'
import { OutputItem } from './output-item.js'
import type { PieceKind } from './output-item.js'

/**
 * Adds up a streamed response. An item is taken from its `response.output_item.done`, or else from the final response, or
 * else from its deltas: compatible servers omit some of them.
 */
export class ResponseFold implements ReplyFold {
  readonly #onDelta: FoldOptions['onDelta']
  readonly #ids: ReplyCallIds
  readonly #items: OutputItem[] = []
  readonly #byIndex = new Map<number, OutputItem>()
  /** The item of the last event. */
  #current: OutputItem | null = null
  #begun: Fields = {}
  #final: Fields | null = null

  constructor({ callIdFor, onDelta }: FoldOptions) {
    this.#onDelta = onDelta
    this.#ids = new ReplyCallIds(callIdFor)
  }

  add({ event, data }: WireChunk): void {
    if (!isObject(data)) return
    const type = stringIn(data['type']) || stringIn(event)
    const end = type.lastIndexOf('.')
    const texts = TEXT_EVENTS.get(type.slice(0, end))
    if (texts === undefined) this.#addEvent(type, data)
    else if (type.endsWith('.delta')) this.#grow(texts, data)
    else if (type.endsWith('.done')) this.#complete(texts, data)
  }

  end(): DecodedReply {
    if (this.#final === null) {
      const message = 'The stream ended before the event that completes the response.'
      throw new HarnessError('provider_error', message, { retryable: true })
    }
    const output = objectsIn(this.#final['output'])
    const parts = this.#parts(output)
    const items = this.#items.map(({ item }) => item)
    return decodedReply(output.length > 0 ? this.#final : { ...this.#final, output: items }, parts)
  }

  #grow({ kind, index }: TextEvents, data: Fields): void {
    const text = stringIn(data['delta'])
    if (text !== '') this.#itemOf(data).grow(kind, numberOf(data[index]) ?? 0, text)
  }

  /** The whole of a text, for a server that sent no pieces of it. */
  #complete({ kind, index, whole }: TextEvents, data: Fields): void {
    const text = stringIn(data[whole])
    if (text === '') return
    const item = numberOf(data['output_index'])
    const isKnown = item === undefined ? this.#current !== null : this.#byIndex.has(item)
    // An item without earlier events may be known under another index.
    if (isKnown || this.#items.length === 0) this.#itemOf(data).complete(kind, numberOf(data[index]) ?? 0, text)
  }

  #addEvent(type: string, data: Fields): void {
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

  #announce(data: Fields, item: Fields): void {
    const index = numberOf(data['output_index'])
    const known = index === undefined ? undefined : this.#byIndex.get(index)
    // A repeated item is the same item; another item in the place of a finished one is a new item with a wrong index.
    if (known === undefined || (known.isDone && known.item['id'] !== item['id'])) this.#open(index, item)
    else this.#current = known
  }

  /** The item of an event: by its index, or else by its id, or else the item of the last event. */
  #itemOf(data: Fields, item: Fields = {}): OutputItem {
    const index = numberOf(data['output_index'])
    if (index === undefined) {
      const id = stringIn(data['item_id']) || stringIn(item['id'])
      const named = id === '' ? undefined : this.#items.find((each) => each.item['id'] === id)
      return named ?? this.#current ?? this.#open(undefined, item)
    }
    return this.#byIndex.get(index) ?? this.#open(index, item)
  }

  #open(index: number | undefined, item: Fields): OutputItem {
    const opened = new OutputItem(index ?? this.#items.length, item, { ids: this.#ids, onDelta: this.#onDelta })
    this.#items.push(opened)
    this.#byIndex.set(opened.index, opened)
    this.#current = opened
    return opened
  }

  #conclude(event: string, response: Fields): void {
    const own = stringIn(response['status'])
    // Some servers end a response with the status of its beginning.
    const status = ENDINGS.has(`response.${own}`) ? own : event.slice('response.'.length)
    const final = { ...this.#begun, ...response, status }
    const failure = failureOf(final)
    if (failure !== undefined) throw failure
    this.#final = final
  }

  /** The parts of all items, including those of the final response only, in the order of the output. */
  #parts(output: readonly Fields[]): readonly AssistantPart[] {
    const rest = new Map(output.entries())
    const places = new Map<OutputItem, number>()
    for (const find of [placeOf, placeByOrder]) {
      for (const item of this.#items) {
        const place = places.has(item) ? undefined : find(item, rest)
        if (place === undefined) continue
        places.set(item, place)
        rest.delete(place)
      }
    }
    const placed = this.#items.map((item) => {
      const place = places.get(item)
      return { index: place ?? item.index, parts: item.parts(place === undefined ? undefined : output[place]) }
    })
    for (const [index, final] of rest) {
      placed.push({ index, parts: new OutputItem(index, {}, { ids: this.#ids, onDelta: this.#onDelta }).parts(final) })
    }
    return placed.sort((left, right) => left.index - right.index).flatMap(({ parts }) => parts)
  }
}

/** The events `….delta` with a piece of a text and `….done` with the whole text. */
interface TextEvents {
  readonly kind: PieceKind
  /** The field with the index of the block. */
  readonly index: string
  /** The field with the whole text. */
  readonly whole: string
}

const TEXT_EVENTS: ReadonlyMap<string, TextEvents> = new Map([
  ['response.output_text', { kind: 'text', index: 'content_index', whole: 'text' }],
  ['response.refusal', { kind: 'refusal', index: 'content_index', whole: 'refusal' }],
  ['response.reasoning_summary_text', { kind: 'summary', index: 'summary_index', whole: 'text' }],
  ['response.reasoning_text', { kind: 'reasoning', index: 'content_index', whole: 'text' }],
  ['response.function_call_arguments', { kind: 'arguments', index: '', whole: 'arguments' }],
  ['response.custom_tool_call_input', { kind: 'input', index: '', whole: 'input' }],
])

/** Events that end a response; the second word is its status. */
const ENDINGS: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'response.cancelled',
])

/** The index of this item in the final output: the same index, or that of the same id. */
function placeOf({ index, item }: OutputItem, output: ReadonlyMap<number, Fields>): number | undefined {
  const there = output.get(index)
  if (there !== undefined && (item['type'] === undefined || there['type'] === item['type'])) return index
  const id = stringIn(item['id'])
  return id === '' ? undefined : [...output].find(([, each]) => each['id'] === id)?.[0]
}

/** For a server with other indices and ids in the final output: the first item of the same type that is left. */
function placeByOrder({ type }: OutputItem, output: ReadonlyMap<number, Fields>): number | undefined {
  return [...output].find(([, each]) => each['type'] === type)?.[0]
}

function responseOf(data: Fields): Fields {
  return isObject(data['response']) ? data['response'] : {}
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
