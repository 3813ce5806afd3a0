import type { ModelDelta } from '../../contracts/model.js'
import type { AssistantPart } from '../../contracts/entry.js'
import type { ReplyCallIds } from '../wire/calls.js'
import { stringIn } from '../wire/read.js'
import type { Fields } from '../wire/read.js'
import {
  argumentsOf,
  blocksOf,
  callIdOf,
  isCall,
  isText,
  partsOf,
  reasoningText,
  REASONING_SEPARATOR,
} from './parts.js'

/** The target of a delta: a block of a message, a piece of reasoning, or the input of a tool call. */
export type PieceKind = keyof typeof BLOCKS | 'arguments' | 'input'

/** The blocks of an item, in the form of the API. */
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
 * One item of a streamed response: its announcement, the sum of its deltas and its final form. Emits the deltas, and at
 * the end anything that they lacked, so that the emitted deltas add up to the reply.
 */
export class OutputItem {
  /** Its index in the output, according to the server. */
  readonly index: number
  readonly #ids: ReplyCallIds
  readonly #onDelta: ((delta: ModelDelta) => void) | undefined
  readonly #announced: Fields
  readonly #blocks: Block[] = []
  #input: { readonly kind: 'arguments' | 'input'; text: string } | null = null
  #emittedInput = 0
  #callId: string | null = null
  #done: Fields | null = null

  constructor(
    index: number,
    announced: Fields,
    { ids, onDelta }: { readonly ids: ReplyCallIds; readonly onDelta?: ((delta: ModelDelta) => void) | undefined },
  ) {
    this.index = index
    this.#ids = ids
    this.#onDelta = onDelta
    this.#announced = announced
    // A call without an id may get one when it is complete: its deltas wait until then.
    if (isCall(announced) && stringIn(announced['call_id']) !== '') this.#callId = ids.take(callIdOf(announced), index)
  }

  /** The item, as far as it is known. */
  get item(): Fields {
    return this.#done ?? this.#announced
  }

  /** Its type, according to its events if it was not announced. */
  get type(): unknown {
    return this.#folded()['type']
  }

  get isDone(): boolean {
    return this.#done !== null
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
      : this.#blocks.some((block) => block.kind === kind && (block.index === index || block.text === text))
    if (!isKnown && !this.isDone) this.grow(kind, index, text)
  }

  /** The item is complete. */
  close(item: Fields): void {
    this.#done = item
    this.#catchUp(item)
  }

  /** Its parts at the end of the stream; `final` is the same item in the final response. */
  parts(final: Fields | undefined): readonly AssistantPart[] {
    const item = [this.#done, final].find((given) => given && this.#isWhole(given)) ?? this.#folded()
    this.close(item)
    return partsOf(item, () => this.#idOf(item))
  }

  #growBlock(kind: Block['kind'], index: number, text: string): void {
    const block = this.#blockOf(kind, index)
    const begins = block.text === ''
    block.text += text
    if (kind === 'text') this.#onDelta?.({ kind: 'text_delta', text })
    if (!isReasoning(block)) return
    const follows = begins && this.#blocks.filter(isReasoning).length > 1
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
  #catchUp(item: Fields): void {
    if (isCall(item)) {
      this.#emitInput(argumentsOf(item).slice(this.#emittedInput), this.#idOf(item))
    } else if (item['type'] === 'reasoning') {
      const text = reasoningText(item)
      if (text !== '' && !this.#blocks.some(isReasoning)) this.#growBlock('summary', 0, text)
    } else if (item['type'] === 'message') {
      const blocks = blocksOf(item).filter(isText)
      this.#catchUpTexts(blocks.map((block) => stringIn(block['text'])))
    }
  }

  /** Texts are matched by their order: not every server counts the blocks of a message from 0. */
  #catchUpTexts(texts: readonly string[]): void {
    const known = this.#blocks.filter(({ kind }) => kind === 'text').sort(byIndex)
    let unknown = texts.length - known.length
    for (const text of texts) {
      const [block] = known
      const isContinued = block !== undefined && text.startsWith(block.text)
      if (unknown > 0 && !isContinued) {
        unknown -= 1
        if (text !== '') this.#growBlock('text', this.#freeIndex(), text)
        continue
      }
      known.shift()
      const rest = isContinued ? text.slice(block.text.length) : ''
      if (rest !== '') this.#growBlock('text', block?.index ?? 0, rest)
    }
  }

  #freeIndex(): number {
    return Math.max(-1, ...this.#blocks.map(({ index }) => index)) + 1
  }

  #idOf(item: Fields): string {
    this.#callId ??= this.#ids.take(callIdOf(item), this.index)
    return this.#callId
  }

  /** True if `item` contains everything that its deltas did: some servers close an item without content. */
  #isWhole(item: Fields): boolean {
    if (isCall(item)) {
      const input = this.#input?.kind === 'input' ? stringIn(item['input']) : argumentsOf(item)
      return input.length >= (this.#input?.text.length ?? 0)
    }
    if (item['type'] !== 'message') return true
    const held = blocksOf(item).map((block) => stringIn(block['text'] ?? block['refusal']))
    return held.join('').length >= this.#blocks.reduce((length, block) => length + block.text.length, 0)
  }

  /** The sum of the deltas. */
  #folded(): Fields {
    const { item } = this
    if (this.#input?.kind === 'arguments') return { type: 'function_call', ...item, arguments: this.#input.text }
    if (this.#input?.kind === 'input') return { type: 'custom_tool_call', ...item, input: this.#input.text }
    if (this.#blocks.length === 0) return item
    if (!this.#blocks.some(isReasoning)) {
      return { type: 'message', role: 'assistant', ...item, content: this.#wireBlocks('text', 'refusal') }
    }
    const [summary, content] = [this.#wireBlocks('summary'), this.#wireBlocks('reasoning')]
    return { type: 'reasoning', ...item, summary, ...(content.length > 0 && { content }) }
  }

  #wireBlocks(...kinds: readonly Block['kind'][]): readonly Fields[] {
    return this.#blocks
      .filter(({ kind, text }) => kinds.includes(kind) && text !== '')
      .sort(byIndex)
      .map(({ kind, text }) => BLOCKS[kind](text))
  }
}

function byIndex(left: Block, right: Block): number {
  return left.index - right.index
}

function isReasoning({ kind }: Block): boolean {
  return kind === 'summary' || kind === 'reasoning'
}
