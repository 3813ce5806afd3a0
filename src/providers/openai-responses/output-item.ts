import type { ModelDelta } from '../../model/contracts.js'
import type { AssistantPart } from '../../transcript/entry.js'
import type { CallIds } from './call-ids.js'
import { stringOf } from './native.js'
import type { WireObject } from './native.js'
import { argumentsOf, blocksOf, isCall, isText, partsOf, reasoningText, REASONING_SEPARATOR } from './parts.js'

/** What the pieces of an item are, by the event that brings them. */
export const PIECE_KINDS: ReadonlyMap<string, PieceKind> = new Map([
  ['response.output_text.delta', 'text'],
  ['response.refusal.delta', 'refusal'],
  ['response.reasoning_summary_text.delta', 'summary'],
  ['response.reasoning_text.delta', 'reasoning'],
  ['response.function_call_arguments.delta', 'arguments'],
  ['response.custom_tool_call_input.delta', 'input'],
])

export type PieceKind = 'text' | 'refusal' | 'summary' | 'reasoning' | 'arguments' | 'input'

type Listener = ((delta: ModelDelta) => void) | undefined

/** A text that grows: a block of a message, a piece of reasoning, the arguments of a call. */
interface Piece {
  readonly kind: PieceKind
  readonly index: number
  text: string
}

/** One item of a response that is being streamed: what was announced, what has come of it, what it was in the end. */
export class OutputItem {
  /** Its place in the output, as the server counts. */
  readonly index: number
  readonly #ids: CallIds
  readonly #onDelta: Listener
  #announced: WireObject
  #done: WireObject | null = null
  #pieces: Piece[] = []
  #callId: string | null = null
  /** Characters of the arguments that have been told. */
  #toldArguments = 0

  constructor(index: number, announced: WireObject, ids: CallIds, onDelta: Listener) {
    this.index = index
    this.#ids = ids
    this.#onDelta = onDelta
    this.#announced = announced
    // Without its id a call's deltas are held back until the whole item has come.
    if (isCall(announced) && stringOf(announced['call_id']) !== '') this.#callId = ids.give(index, announced)
  }

  get isDone(): boolean {
    return this.#done !== null
  }

  hasId(id: string): boolean {
    return id !== '' && stringOf(this.#announced['id']) === id
  }

  grow(kind: PieceKind, index: number, text: string): void {
    const piece = this.#pieceOf(kind, index)
    const begins = piece.text === ''
    piece.text += text
    if (this.#onDelta === undefined) return
    if (kind === 'text') this.#onDelta({ kind: 'text_delta', text })
    else if (kind === 'summary' || kind === 'reasoning') this.#tellReasoning(text, begins)
    else if (kind === 'arguments') this.#tellArguments(piece.text)
  }

  /** The item is complete. What its deltas left out is told now. */
  close(item: WireObject): void {
    this.#done = item
    this.#catchUp(item)
  }

  /** The item's parts at the end of the stream; `final` is what the response's own output has in its place. */
  parts(final: WireObject | undefined): readonly AssistantPart[] {
    const whole = [this.#done, final].find((item) => item !== null && item !== undefined && this.#saysAll(item))
    const item = whole ?? this.#gathered()
    this.#catchUp(item)
    this.#done = item
    return partsOf(item, () => this.#idOf(item))
  }

  /** The item as it stands: what `parts` was made of. */
  get item(): WireObject {
    return this.#done ?? this.#announced
  }

  #pieceOf(kind: PieceKind, index: number): Piece {
    const last = this.#pieces.at(-1)
    if (last?.kind === kind && last.index === index) return last
    const known = this.#pieces.find((piece) => piece.kind === kind && piece.index === index)
    if (known !== undefined) return known
    const piece = { kind, index, text: '' }
    this.#pieces.push(piece)
    return piece
  }

  #tellReasoning(text: string, begins: boolean): void {
    const follows = begins && this.#pieces.filter(isThought).length > 1
    this.#onDelta?.({ kind: 'reasoning_delta', text: follows ? REASONING_SEPARATOR + text : text })
  }

  #tellArguments(whole: string): void {
    if (this.#callId === null || whole.length <= this.#toldArguments) return
    this.#onDelta?.({ kind: 'tool_input_delta', text: whole.slice(this.#toldArguments), callId: this.#callId })
    this.#toldArguments = whole.length
  }

  #catchUp(item: WireObject): void {
    if (isCall(item)) {
      this.#callId = this.#idOf(item)
      this.#tellArguments(argumentsOf(item))
    } else if (item['type'] === 'reasoning') {
      const text = reasoningText(item)
      if (text !== '' && !this.#pieces.some(isThought)) this.grow('summary', 0, text)
    } else if (item['type'] === 'message') {
      for (const [index, block] of blocksOf(item).entries()) {
        if (isText(block)) this.#catchUpText(index, stringOf(block['text']))
      }
    }
  }

  #catchUpText(index: number, whole: string): void {
    const told = this.#pieceOf('text', index).text
    if (whole.length > told.length && whole.startsWith(told)) this.grow('text', index, whole.slice(told.length))
  }

  #idOf(item: WireObject): string {
    this.#callId ??= this.#ids.give(this.index, item)
    return this.#callId
  }

  /** Whether `item` holds all the text that its deltas brought: some servers close an item with nothing in it. */
  #saysAll(item: WireObject): boolean {
    if (isCall(item)) return argumentsOf(item).length >= this.#textOf('arguments').length
    if (item['type'] !== 'message') return true
    const texts = blocksOf(item).map((block) => stringOf(isText(block) ? block['text'] : block['refusal']))
    return texts.join('').length >= this.#textOf('text').length + this.#textOf('refusal').length
  }

  #textOf(kind: PieceKind): string {
    return this.#pieces.map((piece) => (piece.kind === kind ? piece.text : '')).join('')
  }

  /** The item that the deltas add up to. */
  #gathered(): WireObject {
    const item = { ...this.#announced, ...this.#done }
    switch (this.#pieces[0]?.kind) {
      case undefined:
        return item
      case 'text':
      case 'refusal':
        return { type: 'message', role: 'assistant', ...item, content: this.#blocks(['text', 'refusal']) }
      case 'summary':
      case 'reasoning':
        return { type: 'reasoning', ...item, summary: this.#blocks(['summary']), content: this.#blocks(['reasoning']) }
      case 'arguments':
        return { type: 'function_call', ...item, arguments: this.#textOf('arguments') }
      case 'input':
        return { type: 'custom_tool_call', ...item, input: this.#textOf('input') }
    }
  }

  #blocks(kinds: readonly PieceKind[]): readonly WireObject[] {
    const pieces = this.#pieces.filter(({ kind }) => kinds.includes(kind))
    return pieces.sort((left, right) => left.index - right.index).map(({ kind, text }) => BLOCKS[kind](text))
  }
}

function isThought({ kind }: Piece): boolean {
  return kind === 'summary' || kind === 'reasoning'
}

const BLOCKS: Readonly<Record<PieceKind, (text: string) => WireObject>> = {
  text: (text) => ({ type: 'output_text', text, annotations: [] }),
  refusal: (refusal) => ({ type: 'refusal', refusal }),
  summary: (text) => ({ type: 'summary_text', text }),
  reasoning: (text) => ({ type: 'reasoning_text', text }),
  arguments: (text) => ({ type: 'input_text', text }),
  input: (text) => ({ type: 'input_text', text }),
}
