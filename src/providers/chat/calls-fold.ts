import { isObject, parseJson } from '../../util/json.js'
import { argumentsText, customArguments, ReplyCallIds } from '../wire/calls.js'
import { isFilled, objectsIn, stringIn } from '../wire/read.js'
import type { Fields } from '../wire/read.js'
import { mergePieces } from './merge-pieces.js'

/** `callId` is final. */
type Emit = (text: string, callId: string, toolName: string) => void

/**
 * Adds up the tool calls of a streamed message. Servers assign a piece to its call in different ways: by index, by id, by
 * neither (a name then begins a call), or by an index that is repeated for the next call.
 */
export class CallsFold {
  readonly #emit: Emit
  readonly #ids: ReplyCallIds
  readonly #calls: CallFold[] = []
  readonly #byIndex = new Map<unknown, CallFold>()

  constructor(callIdFor: (index: number) => string, emit: Emit) {
    this.#ids = new ReplyCallIds(callIdFor)
    this.#emit = emit
  }

  add(pieces: unknown): void {
    for (const piece of objectsIn(pieces)) this.#addPiece(readPiece(piece))
  }

  /** Final ids, in the order of `value`. The input of custom tools is emitted now, since it becomes JSON. */
  end(): string[] {
    for (const call of this.#calls) {
      if (call.isCustom) this.#emit(customArguments(call.text), this.#idOf(call), call.name)
    }
    return this.#calls.map((call) => this.#idOf(call))
  }

  value(): Fields[] {
    return this.#calls.map((call) => call.value())
  }

  #addPiece(piece: Piece): void {
    const call = this.#callOf(piece)
    if (this.#byIndex.get(piece.index) !== call && piece.index !== null) this.#byIndex.set(piece.index, call)
    const text = call.add(piece)
    if (text !== '' && !call.isCustom) this.#emit(text, this.#idOf(call), call.name)
  }

  #callOf(piece: Piece): CallFold {
    const { id, index, name } = piece
    const last = this.#calls.at(-1)
    if (index !== null) {
      const known = this.#byIndex.get(index)
      return known === undefined || known.isFollowedBy(piece) ? this.#begin() : known
    }
    const known = id === '' ? undefined : this.#calls.find((call) => call.id === id)
    if (known !== undefined) return known
    if (last === undefined || (id !== '' && last.id !== '')) return this.#begin()
    return name !== '' && last.name !== '' ? this.#begin() : last
  }

  #begin(): CallFold {
    const call = new CallFold()
    this.#calls.push(call)
    return call
  }

  /** The final id of a call, the same in its deltas and its part. */
  #idOf(call: CallFold): string {
    call.finalId ??= this.#ids.take(call.id, this.#calls.indexOf(call))
    return call.finalId
  }
}

/** A piece of a call; absent fields are empty. */
interface Piece {
  readonly index: unknown
  readonly id: string
  readonly type: string
  readonly name: string
  readonly text: string
  readonly others: Fields
}

function readPiece({ index, id, type, function: func, custom, ...others }: Fields): Piece {
  const body = isObject(custom) && !isObject(func) ? custom : isObject(func) ? func : {}
  const text = body['arguments'] ?? body['input'] ?? ''
  return {
    index: index ?? null,
    id: stringIn(id),
    type: stringIn(type) || (body === custom ? 'custom' : ''),
    name: stringIn(body['name']),
    text: text === '' ? '' : argumentsText(text),
    others,
  }
}

class CallFold {
  id = ''
  finalId: string | null = null
  name = ''
  text = ''
  #type = ''
  #others: Fields = {}

  get isCustom(): boolean {
    return this.#type === 'custom'
  }

  /** True if `piece` begins another call: it has another id, or a beginning of its own. */
  isFollowedBy({ id, name, text }: Piece): boolean {
    if (name === '' || this.name === '') return false
    if (id !== '' && this.id !== '') return id !== this.id
    return id === '' && text.startsWith('{') && this.#isComplete()
  }

  /** Adds a piece, and returns the new text of its arguments. */
  add({ id, type, name, text, others }: Piece): string {
    if (this.id === '') this.id = id
    if (type !== '') this.#type = type
    if (name !== this.name && this.text === '') this.name += name
    if (isFilled(others)) this.#others = mergePieces(this.#others, others) as Fields
    if (this.#isRepeated(text)) return ''
    this.text += text
    return text
  }

  value(): Fields {
    const { id, name, text } = this
    const body = this.isCustom ? { custom: { name, input: text } } : { function: { name, arguments: text } }
    return { id, type: this.#type || 'function', ...body, ...this.#others }
  }

  /** True if `text` repeats the whole arguments, as in a last chunk with the sum. */
  #isRepeated(text: string): boolean {
    return text.length === this.text.length && text.startsWith('{') && text === this.text && this.#isComplete()
  }

  #isComplete(): boolean {
    return this.text.endsWith('}') && parseJson(this.text).ok
  }
}
