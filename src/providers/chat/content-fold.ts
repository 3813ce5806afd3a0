import { isObject } from '../../util/json.js'
import { stringIn } from '../wire/read.js'
import type { Fields } from '../wire/read.js'

type Emit = (text: string) => void

type Item =
  | { readonly kind: 'text'; readonly pieces: string[] }
  | { readonly kind: 'thinking'; fields: Fields; readonly content: ContentFold }
  | { readonly kind: 'block'; readonly block: unknown }

/** Adds up the content of a streamed message, which consists of strings, lists of blocks, or both. */
export class ContentFold {
  readonly #emit: Emit
  readonly #emitThinking: Emit
  readonly #items: Item[] = []
  #hasBlocks = false

  constructor(emit: Emit, emitThinking: Emit) {
    this.#emit = emit
    this.#emitThinking = emitThinking
  }

  add(content: unknown): void {
    if (typeof content === 'string') return this.#addText(content)
    if (!Array.isArray(content)) return
    this.#hasBlocks = true
    for (const block of content as unknown[]) this.#addBlock(block)
  }

  /** The sum: a string, or a list of blocks if there were any; null if there was nothing. */
  value(): string | unknown[] | null {
    if (this.#hasBlocks) return this.#items.map(blockOf)
    const [item] = this.#items
    return item?.kind === 'text' ? item.pieces.join('') : null
  }

  #addText(text: string): void {
    if (text === '') return
    const last = this.#items.at(-1)
    if (last?.kind === 'text') last.pieces.push(text)
    else this.#items.push({ kind: 'text', pieces: [text] })
    this.#emit(text)
  }

  #addBlock(block: unknown): void {
    if (!isObject(block)) return
    if (block['type'] === 'text') this.#addText(stringIn(block['text']))
    else if (block['type'] === 'thinking') this.#addThinking(block)
    else this.#items.push({ kind: 'block', block })
  }

  #addThinking({ thinking, ...fields }: Fields): void {
    let last = this.#items.at(-1)
    if (last?.kind !== 'thinking') {
      last = { kind: 'thinking', fields, content: new ContentFold(this.#emitThinking, this.#emitThinking) }
      this.#items.push(last)
    }
    last.fields = { ...last.fields, ...fields }
    last.content.add(thinking)
  }
}

function blockOf(item: Item): unknown {
  switch (item.kind) {
    case 'text':
      return { type: 'text', text: item.pieces.join('') }
    case 'thinking':
      return { ...item.fields, thinking: item.content.value() ?? [] }
    case 'block':
      return item.block
  }
}
