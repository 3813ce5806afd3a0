import type { AssistantPart } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import type { ModelDelta } from '#core/model-session.js'
import { GrowingText } from '#util/growing-text.js'
import { isObject, parseJson } from '#util/json.js'
import { errorFromBody } from '../http/provider-errors.js'
import type { DecodedReply, ReplyFoldOptions, ReplyFold, WireChunk } from '../http/wire-format.js'
import { ReplyCallIds } from '../wire/call-ids.js'
import { withoutRepeatedCalls } from '../wire/repeated-calls.js'
import { objectsIn, stringIn } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import {
  callArguments,
  contentBlocks,
  callIdOf,
  isCall,
  isVisibleText,
  outputParts,
  reasoningText,
  REASONING_SEPARATOR,
  itemCall,
} from './output-items.js'
import { decodedReply, responseFailure } from './reply.js'

/**
 * Adds up a streamed response. An item is taken from its `response.output_item.done`, or else from the final response, or
 * else from its deltas: compatible servers omit some of them.
 */
export class ResponseFold implements ReplyFold {
  readonly #onDelta: ReplyFoldOptions['onDelta']
  readonly #ids: ReplyCallIds
  readonly #items: OutputItem[] = []
  readonly #byIndex = new Map<number, OutputItem>()
  /** The item of the last event. */
  #current: OutputItem | null = null
  #begun: WireFields = {}
  #final: WireFields | null = null

  constructor({ callIdFor, onDelta }: ReplyFoldOptions) {
    this.#onDelta = onDelta
    this.#ids = new ReplyCallIds(callIdFor)
  }

  get isComplete(): boolean {
    return this.#final !== null
  }

  add({ event, data }: WireChunk): void {
    if (!isObject(data)) return
    const type = stringIn(data['type']) || stringIn(event)
    const grown = DELTAS.get(type)
    if (grown !== undefined) return this.#grow(grown, data)
    const done = DONE.get(type)
    if (done === undefined) this.#addEvent(type, data)
    else this.#complete(done, data)
  }

  end(): DecodedReply {
    if (this.#final === null) {
      const message = 'The stream ended before the event that completes the response.'
      throw new HarnessError('provider_error', message, { retryable: true, failure: 'connection' })
    }
    const output = objectsIn(this.#final['output'])
    const parts = this.#parts(output)
    const items = this.#items.map(({ item }) => item)
    return decodedReply(output.length > 0 ? this.#final : { ...this.#final, output: items }, parts)
  }

  #grow({ kind, index }: TextEvents, data: WireFields): void {
    const text = stringIn(data['delta'])
    if (text !== '') this.#itemOf(data).grow(kind, indexNumber(data[index]) ?? 0, text)
  }

  /** The whole of a text, for a server that sent no pieces of it. */
  #complete({ kind, index, whole }: TextEvents, data: WireFields): void {
    const text = stringIn(data[whole])
    if (text === '') return
    const item = indexNumber(data['output_index'])
    const isKnown = item === undefined ? this.#current !== null : this.#byIndex.has(item)
    // An item without earlier events may be known under another index.
    if (isKnown || this.#items.length === 0) this.#itemOf(data).complete(kind, indexNumber(data[index]) ?? 0, text)
  }

  #addEvent(type: string, data: WireFields): void {
    switch (type) {
      case 'response.created':
        this.#begun = eventResponse(data)
        return
      case 'response.output_item.added':
        if (isObject(data['item'])) this.#announce(data, data['item'])
        return
      case 'response.output_item.done':
        if (isObject(data['item'])) this.#itemOf(data, data['item']).close(data['item'])
        return
      default:
        if (ENDINGS.has(type)) this.#conclude(type, eventResponse(data))
        else if (type === 'error' || (type === '' && isObject(data['error']))) throw errorFromBody(200, {}, data)
    }
  }

  #announce(data: WireFields, item: WireFields): void {
    const index = indexNumber(data['output_index'])
    const known = index === undefined ? undefined : this.#byIndex.get(index)
    // A repeated item is the same item; another item in the place of a finished one is a new item with a wrong index.
    if (known === undefined || (known.isDone && known.item['id'] !== item['id'])) this.#open(index, item)
    else this.#current = known
  }

  /** The item of an event: by its id, or else by its index, or else the item of the last event. */
  #itemOf(data: WireFields, item?: WireFields): OutputItem {
    const index = indexNumber(data['output_index'])
    const id = stringIn(data['item_id']) || stringIn(item?.['id'])
    const placed = index === undefined ? undefined : this.#byIndex.get(index)
    // Some servers give all items one id.
    const isInPlace = id === '' || placed?.item['id'] === id
    const named = isInPlace ? undefined : this.#itemNamed(id)
    const isUnknown = index === undefined || (id === '' && this.#current?.isOpenCall === true)
    return named ?? placed ?? (isUnknown ? this.#current : null) ?? this.#open(index, item ?? {})
  }

  #itemNamed(id: unknown): OutputItem | undefined {
    return this.#items.findLast((each) => each.item['id'] === id)
  }

  #open(index: number | undefined, item: WireFields): OutputItem {
    const opened = new OutputItem(index ?? this.#items.length, item, { ids: this.#ids, onDelta: this.#onDelta })
    this.#items.push(opened)
    this.#byIndex.set(opened.index, opened)
    this.#current = opened
    return opened
  }

  #conclude(event: string, response: WireFields): void {
    const own = stringIn(response['status'])
    // Some servers end a response with the status of its beginning.
    const status = ENDINGS.has(`response.${own}`) ? own : event.slice('response.'.length)
    const final = { ...this.#begun, ...response, status }
    const failure = responseFailure(final)
    if (failure !== undefined) throw failure
    this.#final = final
  }

  /** The parts of all items, including those of the final response only, in the order of the output. */
  #parts(output: readonly WireFields[]): readonly AssistantPart[] {
    const rest = new Map(output.entries())
    const places = new Map<OutputItem, number>()
    for (const find of [finalIndex, placeByOrder]) {
      for (const item of this.#items) {
        const place = places.has(item) ? undefined : find(item, rest)
        if (place === undefined) continue
        places.set(item, place)
        rest.delete(place)
      }
    }
    const placed = this.#items.map((item) => {
      const place = places.get(item)
      return { item, index: place ?? item.index, whole: item.whole(place === undefined ? undefined : output[place]) }
    })
    for (const [index, final] of rest) {
      const item = new OutputItem(index, {}, { ids: this.#ids, onDelta: this.#onDelta })
      placed.push({ item, index, whole: item.whole(final) })
    }
    const inOrder = placed.sort((left, right) => left.index - right.index)
    return withoutRepeatedCalls(
      inOrder,
      ({ whole }) => itemCall(whole),
      (whole, announced) => whole.item.replace(announced.item),
    ).flatMap(({ item, whole }) => item.parts(whole))
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

const TEXT_EVENTS: readonly (readonly [string, TextEvents])[] = [
  ['response.output_text', { kind: 'text', index: 'content_index', whole: 'text' }],
  ['response.refusal', { kind: 'refusal', index: 'content_index', whole: 'refusal' }],
  ['response.reasoning_summary_text', { kind: 'summary', index: 'summary_index', whole: 'text' }],
  ['response.reasoning_text', { kind: 'reasoning', index: 'content_index', whole: 'text' }],
  ['response.function_call_arguments', { kind: 'arguments', index: '', whole: 'arguments' }],
  ['response.custom_tool_call_input', { kind: 'input', index: '', whole: 'input' }],
]
const DELTAS = new Map(TEXT_EVENTS.map(([name, events]) => [`${name}.delta`, events]))
const DONE = new Map(TEXT_EVENTS.map(([name, events]) => [`${name}.done`, events]))

/** Events that end a response; the second word is its status. */
const ENDINGS: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'response.cancelled',
])

/** The index of this item in the final output: the same index, or that of the same id. */
function finalIndex({ index, item }: OutputItem, output: ReadonlyMap<number, WireFields>): number | undefined {
  const there = output.get(index)
  if (there !== undefined && (item['type'] === undefined || there['type'] === item['type'])) return index
  const id = stringIn(item['id'])
  return id === '' ? undefined : [...output].find(([, each]) => each['id'] === id)?.[0]
}

/** For a server with other indices and ids in the final output: the first item of the same type that is left. */
function placeByOrder({ type }: OutputItem, output: ReadonlyMap<number, WireFields>): number | undefined {
  return [...output].find(([, each]) => each['type'] === type)?.[0]
}

function eventResponse(data: WireFields): WireFields {
  return isObject(data['response']) ? data['response'] : {}
}

function indexNumber(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

/** The target of a delta: a block of a message, a piece of reasoning, or the input of a tool call. */
export type PieceKind = keyof typeof BLOCKS | 'arguments' | 'input'

/** The blocks of an item, in the form of the API. */
const BLOCKS = {
  text: (text: string) => ({ type: 'output_text', text, annotations: [] }),
  refusal: (refusal: string) => ({ type: 'refusal', refusal }),
  summary: (text: string) => ({ type: 'summary_text', text }),
  reasoning: (text: string) => ({ type: 'reasoning_text', text }),
}

class Block extends GrowingText {
  readonly kind: keyof typeof BLOCKS
  readonly index: number

  constructor(kind: keyof typeof BLOCKS, index: number) {
    super()
    this.kind = kind
    this.index = index
  }
}

/**
 * One item of a streamed response: its announcement, the sum of its deltas and its final form. Emits the deltas, and at
 * the end anything that they lacked, so that the emitted deltas add up to the reply.
 */
class OutputItem {
  /** Its index in the output, according to the server. */
  readonly index: number
  readonly #ids: ReplyCallIds
  readonly #onDelta: ((delta: ModelDelta) => void) | undefined
  readonly #announced: WireFields
  readonly #blocks: Block[] = []
  #input: { readonly kind: 'arguments' | 'input'; readonly grown: GrowingText } | null = null
  #emittedInput = 0
  #callId: string | null = null
  #done: WireFields | null = null

  constructor(
    index: number,
    announced: WireFields,
    { ids, onDelta }: { readonly ids: ReplyCallIds; readonly onDelta?: ((delta: ModelDelta) => void) | undefined },
  ) {
    this.index = index
    this.#ids = ids
    this.#onDelta = onDelta
    this.#announced = announced
    // A call without an id may get one when it is complete, and one with a known id may be a repetition: their deltas wait.
    if (isCall(announced) && stringIn(announced['call_id']) !== '' && !ids.has(callIdOf(announced)))
      this.#callId = ids.take(callIdOf(announced), index)
  }

  /** The item, as far as it is known. */
  get item(): WireFields {
    return this.#done ?? this.#announced
  }

  /** Its type, according to its events if it was not announced. */
  get type(): unknown {
    return this.#folded()['type']
  }

  get isDone(): boolean {
    return this.#done !== null
  }

  get isOpenCall(): boolean {
    return this.#done === null && isCall(this.#folded())
  }

  grow(kind: PieceKind, index: number, text: string): void {
    if (kind === 'arguments' || kind === 'input') this.#growInput(kind, text)
    else this.#growBlock(kind, index, text)
  }

  /** The whole text of a piece: used if no delta of it arrived. */
  complete(kind: PieceKind, index: number, text: string): void {
    const isInput = kind === 'arguments' || kind === 'input'
    const isKnown = isInput
      ? this.#input !== null
      : this.#blocks.some((block) => block.kind === kind && (block.index === index || block.whole === text))
    if (!isKnown && !this.isDone) this.grow(kind, index, text)
  }

  /** The item is complete. */
  close(item: WireFields): void {
    this.#done = item
    if (this.#callId !== null || !isCall(item) || !this.#ids.has(callIdOf(item))) this.#catchUp(item)
  }

  /** It at the end of the stream; `final` is the same item in the final response. */
  whole(final: WireFields | undefined): WireFields {
    return [this.#done, final].find((given) => given && this.#isWhole(given)) ?? this.#folded()
  }

  /** Takes the place of `other`, the same call without arguments. */
  replace(other: OutputItem): void {
    this.#callId = other.#callId
    if (other.#emittedInput > 0) this.#emittedInput = Infinity
  }

  /** Its parts at the end of the stream, when `item` is known as the whole of it. */
  parts(item: WireFields): readonly AssistantPart[] {
    this.#done = item
    this.#catchUp(item)
    return outputParts(item, () => this.#idOf(item))
  }

  #growBlock(kind: Block['kind'], index: number, text: string): void {
    const block = this.#blockOf(kind, index)
    const begins = block.isEmpty
    block.add(text)
    if (kind === 'text') return this.#onDelta?.({ kind: 'text_delta', text })
    if (!isReasoning(block)) return
    const follows = begins && this.#blocks.filter(isReasoning).length > 1
    this.#onDelta?.({ kind: 'reasoning_delta', text: follows ? REASONING_SEPARATOR + text : text })
  }

  #blockOf(kind: Block['kind'], index: number): Block {
    const isIt = (block: Block): boolean => block.kind === kind && block.index === index
    const known = this.#blocks.findLast(isIt)
    if (known !== undefined) return known
    const block = new Block(kind, index)
    this.#blocks.push(block)
    return block
  }

  #growInput(kind: 'arguments' | 'input', text: string): void {
    this.#input ??= { kind, grown: new GrowingText() }
    this.#input.grown.add(text)
    // A custom tool's input is emitted when it is complete, since it becomes JSON.
    if (kind === 'arguments' && this.#callId !== null) this.#emitInput(text, this.#callId)
  }

  #emitInput(text: string, callId: string): void {
    if (text === '') return
    this.#emittedInput += text.length
    const toolName = stringIn(this.item['name'])
    this.#onDelta?.({ kind: 'tool_input_delta', text, callId, ...(toolName !== '' && { toolName }) })
  }

  /** Emits the content of `item` that its deltas lacked. */
  #catchUp(item: WireFields): void {
    if (isCall(item)) {
      this.#emitInput(callArguments(item).slice(this.#emittedInput), this.#idOf(item))
    } else if (item['type'] === 'reasoning') {
      const text = reasoningText(item)
      if (text !== '' && !this.#blocks.some(isReasoning)) this.#growBlock('summary', 0, text)
    } else if (item['type'] === 'message') {
      const blocks = contentBlocks(item).filter(isVisibleText)
      this.#catchUpTexts(blocks.map((block) => stringIn(block['text'])))
    }
  }

  /** Texts are matched by their order: not every server counts the blocks of a message from 0. */
  #catchUpTexts(texts: readonly string[]): void {
    const known = this.#blocks.filter(({ kind }) => kind === 'text').sort(byIndex)
    let unknown = texts.length - known.length
    for (const text of texts) {
      const [block] = known
      const isContinued = block !== undefined && text.startsWith(block.whole)
      if (unknown > 0 && !isContinued) {
        unknown -= 1
        if (text !== '') this.#growBlock('text', this.#freeIndex(), text)
        continue
      }
      known.shift()
      const rest = isContinued ? text.slice(block.whole.length) : ''
      if (rest !== '') this.#growBlock('text', block?.index ?? 0, rest)
    }
  }

  #freeIndex(): number {
    return Math.max(-1, ...this.#blocks.map(({ index }) => index)) + 1
  }

  #idOf(item: WireFields): string {
    this.#callId ??= this.#ids.take(callIdOf(item), this.index)
    return this.#callId
  }

  /** True if `item` contains everything that its deltas did: some servers close an item without content. */
  #isWhole(item: WireFields): boolean {
    if (isCall(item)) {
      const input = this.#input?.kind === 'input' ? stringIn(item['input']) : callArguments(item)
      return (input !== '{}' && parseJson(input).ok) || input.length >= (this.#input?.grown.whole.length ?? 0)
    }
    if (item['type'] !== 'message') return true
    const held = contentBlocks(item).map((block) => stringIn(block['text'] ?? block['refusal']))
    return held.join('').length >= this.#blocks.reduce((length, block) => length + block.whole.length, 0)
  }

  /** The sum of the deltas. */
  #folded(): WireFields {
    const { item } = this
    if (this.#input?.kind === 'arguments') return { type: 'function_call', ...item, arguments: this.#input.grown.whole }
    if (this.#input?.kind === 'input') return { type: 'custom_tool_call', ...item, input: this.#input.grown.whole }
    if (this.#blocks.length === 0) return item
    if (!this.#blocks.some(isReasoning)) {
      return { type: 'message', role: 'assistant', ...item, content: this.#wireBlocks('text', 'refusal') }
    }
    const [summary, content] = [this.#wireBlocks('summary'), this.#wireBlocks('reasoning')]
    return { type: 'reasoning', ...item, summary, ...(content.length > 0 && { content }) }
  }

  #wireBlocks(...kinds: readonly Block['kind'][]): readonly WireFields[] {
    return this.#blocks
      .filter(({ kind, isEmpty }) => kinds.includes(kind) && !isEmpty)
      .sort(byIndex)
      .map(({ kind, whole }) => BLOCKS[kind](whole))
  }
}

function byIndex(left: Block, right: Block): number {
  return left.index - right.index
}

function isReasoning({ kind }: Block): boolean {
  return kind === 'summary' || kind === 'reasoning'
}
