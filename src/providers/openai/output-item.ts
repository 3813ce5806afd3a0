import type { ModelDelta } from '../../contracts/model.js'
import type { AssistantPart } from '../../contracts/entry.js'
import type { CallIds } from './call-ids.js'
import { stringOf } from './native.js'
import type { WireObject } from './native.js'
import { argumentsOf, blocksOf, isCall, isText, partsOf, reasoningText, REASONING_SEPARATOR } from './parts.js'

/** What a delta is a piece of: a block of a message, a piece of reasoning, or what a tool is called with. */
export type PieceKind = keyof typeof BLOCKS | 'arguments' | 'input'

/** The blocks that an item is made of, as the API writes them. */
const BLOCKS = {
  text: (text: string) => ({ type: 'output_text', text, annotations: [] }),
  refusal: (refusal: string) => ({ type: 'refusal', refusal }),
  summary: (text: string) => ({ type: 'summary_text', text }),
  reasoning: (text: string) => ({ type: 'reasoning_text', text }),
}

interface Block {
  readonly kind: keyof typeof BLOCKS
  readonly index: number
  text: string
}

/**
 * One item of a response that is being streamed: what was announced, what its deltas add up to, what it was in the end.
 * Tells the deltas, and at the end whatever they left out, so that what was told is what the reply holds.
 */
export class OutputItem {
  /** Its place in the output, as the server counts. */
  readonly index: number
  readonly #ids: CallIds
  readonly #onDelta: ((delta: ModelDelta) => void) | undefined
  readonly #announced: WireObject
  readonly #blocks: Block[] = []
  #input: { readonly kind: 'arguments' | 'input'; text: string } | null = null
  #toldOfInput = 0
  #callId: string | null = null
  #done: WireObject | null = null

  constructor(
    index: number,
    announced: WireObject,
    { ids, onDelta }: { readonly ids: CallIds; readonly onDelta?: ((delta: ModelDelta) => void) | undefined },
  ) {
    this.index = index
    this.#ids = ids
    this.#onDelta = onDelta
    this.#announced = announced
    // A call without an id may get one when it is complete: its deltas wait until then.
    if (isCall(announced) && stringOf(announced['call_id']) !== '') this.#callId = ids.give(index, announced)
  }

  /** The item as far as it is known. */
  get item(): WireObject {
    return this.#done ?? this.#announced
  }

  get isDone(): boolean {
    return this.#done !== null
  }

  grow(kind: PieceKind, index: number, text: string): void {
    if (kind === 'arguments' || kind === 'input') this.#growInput(kind, text)
    else this.#growBlock(kind, index, text)
  }

  /** A piece is this text in the end: taken where no delta of it came. */
  complete(kind: PieceKind, index: number, text: string): void {
    const isInput = kind === 'arguments' || kind === 'input'
    const isTold = isInput
      ? this.#input !== null
      : this.#blocks.some((block) => block.kind === kind && block.index === index)
    if (!isTold && !this.isDone) this.grow(kind, index, text)
  }

  /** The item is complete. */
  close(item: WireObject): void {
    this.#done = item
    this.#catchUp(item)
  }

  /** Its parts at the end of the stream; `final` is what the whole response has in its place. */
  parts(final: WireObject | undefined): readonly AssistantPart[] {
    const item = [this.#done, final].find((given) => given && this.#saysAll(given)) ?? this.#gathered()
    this.close(item)
    return partsOf(item, () => this.#idOf(item))
  }

  #growBlock(kind: Block['kind'], index: number, text: string): void {
    const block = this.#blockOf(kind, index)
    const begins = block.text === ''
    block.text += text
    if (kind === 'text') this.#onDelta?.({ kind: 'text_delta', text })
    if (!isThought(block)) return
    const follows = begins && this.#blocks.filter(isThought).length > 1
    this.#onDelta?.({ kind: 'reasoning_delta', text: follows ? REASONING_SEPARATOR + text : text })
  }

  #blockOf(kind: Block['kind'], index: number): Block {
    const isIt = (block: Block): boolean => block.kind === kind && block.index === index
    const last = this.#blocks.at(-1)
    if (last !== undefined && isIt(last)) return last
    const known = this.#blocks.find(isIt)
    if (known !== undefined) return known
    const block = { kind, index, text: '' }
    this.#blocks.push(block)
    return block
  }

  #growInput(kind: 'arguments' | 'input', text: string): void {
    this.#input ??= { kind, text: '' }
    this.#input.text += text
    // A custom tool's input is told when it is whole, since it becomes JSON.
    if (kind === 'arguments' && this.#callId !== null) this.#tellInput(text, this.#callId)
  }

  #tellInput(text: string, callId: string): void {
    if (text === '') return
    this.#toldOfInput += text.length
    const toolName = stringOf(this.item['name'])
    this.#onDelta?.({ kind: 'tool_input_delta', text, callId, ...(toolName !== '' && { toolName }) })
  }

  /** Tells what `item` holds and its deltas did not bring. */
  #catchUp(item: WireObject): void {
    if (isCall(item)) {
      this.#tellInput(argumentsOf(item).slice(this.#toldOfInput), this.#idOf(item))
    } else if (item['type'] === 'reasoning') {
      const text = reasoningText(item)
      if (text !== '' && !this.#blocks.some(isThought)) this.#growBlock('summary', 0, text)
    } else if (item['type'] === 'message') {
      for (const [index, block] of blocksOf(item).entries()) {
        if (isText(block)) this.#catchUpText(index, stringOf(block['text']))
      }
    }
  }

  #catchUpText(index: number, whole: string): void {
    const told = this.#blockOf('text', index).text
    if (whole.length > told.length && whole.startsWith(told)) this.#growBlock('text', index, whole.slice(told.length))
  }

  #idOf(item: WireObject): string {
    this.#callId ??= this.#ids.give(this.index, item)
    return this.#callId
  }

  /** Whether `item` holds all that its deltas brought: some servers close an item with nothing in it. */
  #saysAll(item: WireObject): boolean {
    if (isCall(item)) {
      const input = this.#input?.kind === 'input' ? stringOf(item['input']) : argumentsOf(item)
      return input.length >= (this.#input?.text.length ?? 0)
    }
    if (item['type'] !== 'message') return true
    const held = blocksOf(item).map((block) => stringOf(block['text'] ?? block['refusal']))
    return held.join('').length >= this.#blocks.reduce((length, block) => length + block.text.length, 0)
  }

  /** The item that the deltas add up to. */
  #gathered(): WireObject {
    const { item } = this
    if (this.#input?.kind === 'arguments') return { type: 'function_call', ...item, arguments: this.#input.text }
    if (this.#input?.kind === 'input') return { type: 'custom_tool_call', ...item, input: this.#input.text }
    if (this.#blocks.length === 0) return item
    if (!this.#blocks.some(isThought)) {
      return { type: 'message', role: 'assistant', ...item, content: this.#wireBlocks('text', 'refusal') }
    }
    const [summary, content] = [this.#wireBlocks('summary'), this.#wireBlocks('reasoning')]
    return { type: 'reasoning', ...item, summary, ...(content.length > 0 && { content }) }
  }

  #wireBlocks(...kinds: readonly Block['kind'][]): readonly WireObject[] {
    return this.#blocks
      .filter(({ kind, text }) => kinds.includes(kind) && text !== '')
      .sort((left, right) => left.index - right.index)
      .map(({ kind, text }) => BLOCKS[kind](text))
  }
}

function isThought({ kind }: Block): boolean {
  return kind === 'summary' || kind === 'reasoning'
}
