import { isObject, parseJson } from '../../util/json.js'
import { mergePieces } from './merge-pieces.js'
import { listIn, stringIn } from './read.js'
import type { Fields } from './read.js'
import { argumentsIn, customArguments, uniqueId } from './tool-calls.js'

/** `callId` is final. */
type Told = (text: string, callId: string, toolName: string) => void

/**
 * Gathers the tool calls of a streamed message. Servers differ in how they say which call a piece belongs to: by index,
 * by id, by neither (then a name begins a call), or by an index that they repeat for the next call.
 */
export class CallsFold {
  readonly #callIdFor: (index: number) => string
  readonly #told: Told
  readonly #calls: CallFold[] = []
  readonly #byIndex = new Map<unknown, CallFold>()
  readonly #usedIds = new Set<string>()

  constructor(callIdFor: (index: number) => string, told: Told) {
    this.#callIdFor = callIdFor
    this.#told = told
  }

  add(pieces: unknown): void {
    for (const piece of listIn(pieces)) if (isObject(piece)) this.#addPiece(readPiece(piece))
  }

  /** Final ids, in the order of `value`. What was held back is told now: the input of a custom tool becomes JSON. */
  end(): string[] {
    for (const call of this.#calls)
      if (call.isCustom) this.#told(customArguments(call.text), this.#idOf(call), call.name)
    return this.#calls.map((call) => this.#idOf(call))
  }

  value(): Fields[] {
    return this.#calls.map((call) => call.value())
  }

  #addPiece(piece: Piece): void {
    const call = this.#callOf(piece)
    if (this.#byIndex.get(piece.index) !== call && piece.index !== null) this.#byIndex.set(piece.index, call)
    const text = call.add(piece)
    if (text !== '' && !call.isCustom) this.#told(text, this.#idOf(call), call.name)
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
    return name !== '' && last.isNamed ? this.#begin() : last
  }

  #begin(): CallFold {
    const call = new CallFold()
    this.#calls.push(call)
    return call
  }

  /** The id of a call, decided once: what is told of a call names the id that it keeps. */
  #idOf(call: CallFold): string {
    call.finalId ??= uniqueId(call.id, this.#calls.indexOf(call), { used: this.#usedIds, callIdFor: this.#callIdFor })
    return call.finalId
  }
}

/** A piece of a call: each field empty when it is not in this piece. */
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
    text: text === '' ? '' : argumentsIn(text),
    others,
  }
}

class CallFold {
  id = ''
  finalId: string | null = null
  #type = ''
  #name = ''
  readonly #texts: string[] = []
  #length = 0
  #others: Fields = {}

  get isCustom(): boolean {
    return this.#type === 'custom'
  }

  get text(): string {
    return this.#texts.join('')
  }

  get name(): string {
    return this.#name
  }

  get isNamed(): boolean {
    return this.#name !== ''
  }

  /** Whether `piece` cannot belong to this call: it has an id or a beginning of its own. */
  isFollowedBy({ id, name, text }: Piece): boolean {
    if (name === '' || !this.isNamed) return false
    if (id !== '' && this.id !== '') return id !== this.id
    return id === '' && text.startsWith('{') && this.#isComplete()
  }

  /** Adds a piece, and gives the text of its arguments that is new. */
  add({ id, type, name, text, others }: Piece): string {
    if (this.id === '') this.id = id
    if (type !== '') this.#type = type
    if (name !== this.#name && this.#length === 0) this.#name += name
    if (Object.keys(others).length > 0) this.#others = mergePieces(this.#others, others) as Fields
    if (text === '' || this.#isRepeated(text)) return ''
    this.#texts.push(text)
    this.#length += text.length
    return text
  }

  value(): Fields {
    const type = this.#type || 'function'
    const { text } = this
    const body = this.isCustom
      ? { custom: { name: this.#name, input: text } }
      : { function: { name: this.#name, arguments: text } }
    return { id: this.id, type, ...body, ...this.#others }
  }

  /** The whole arguments once more, as in a last chunk that sums up. */
  #isRepeated(text: string): boolean {
    return text.length === this.#length && text.startsWith('{') && text === this.text && this.#isComplete()
  }

  #isComplete(): boolean {
    return this.#texts.at(-1)?.endsWith('}') === true && parseJson(this.text).ok
  }
}
