import { objectsIn, stringIn } from '../wire/read.js'
import type { Fields } from '../wire/read.js'
import { textOfDetail } from './reply.js'
import { mergePieces } from './merge-pieces.js'
import { REASONING_FIELDS } from './native.js'

/** Adds up the reasoning of a streamed message: plain text by field, and the entries of `reasoning_details`. */
export class ReasoningFold {
  readonly #emit: (text: string) => void
  readonly #texts = new Map<string, string[]>()
  readonly #details: DetailFold[] = []

  constructor(emit: (text: string) => void) {
    this.#emit = emit
  }

  /** `name` is a field of `delta`. Text that several fields repeat is emitted once. */
  add(name: string, value: unknown, delta: Fields): void {
    const first = REASONING_FIELDS.find((field) => stringIn(delta[field]) !== '')
    if (name === 'reasoning_details') {
      for (const detail of objectsIn(value)) this.#addDetail(detail, first === undefined)
      return
    }
    if (typeof value !== 'string') return
    const texts = this.#texts.get(name)
    if (texts === undefined) this.#texts.set(name, [value])
    else texts.push(value)
    if (name === first) this.#emit(value)
  }

  value(): Fields {
    const texts = [...this.#texts].map(([name, pieces]): [string, unknown] => [name, pieces.join('')])
    const details = this.#details.map((detail) => detail.value())
    return { ...Object.fromEntries<unknown>(texts), ...(details.length > 0 && { reasoning_details: details }) }
  }

  #addDetail(detail: Fields, isEmitted: boolean): void {
    const known = this.#details.findLast((other) => other.isContinuedBy(detail))
    if (known === undefined) this.#details.push(new DetailFold(detail))
    else known.add(detail)
    const text = textOfDetail(detail)
    if (isEmitted && text !== '') this.#emit(text)
  }
}

/** One entry of `reasoning_details`; its pieces have the same type and index, and the same id or none. */
class DetailFold {
  #fields: Fields
  readonly #pieces: Readonly<Record<'text' | 'summary', string[]>> = { text: [], summary: [] }

  constructor(fields: Fields) {
    this.#fields = {}
    this.add(fields)
  }

  isContinuedBy({ type, index, id }: Fields): boolean {
    const { type: ownType, index: ownIndex, id: ownId } = this.#fields
    const sameId = stringIn(id) === '' || stringIn(ownId) === '' || id === ownId
    return type === ownType && (index ?? null) === (ownIndex ?? null) && sameId
  }

  add({ text, summary, ...fields }: Fields): void {
    if (typeof text === 'string') this.#pieces.text.push(text)
    if (typeof summary === 'string') this.#pieces.summary.push(summary)
    if (Object.keys(fields).every((name) => fields[name] === this.#fields[name])) return
    this.#fields = mergePieces(this.#fields, fields) as Fields
  }

  value(): Fields {
    const { text, summary } = this.#pieces
    return {
      ...this.#fields,
      ...(text.length > 0 && { text: text.join('') }),
      ...(summary.length > 0 && { summary: summary.join('') }),
    }
  }
}
