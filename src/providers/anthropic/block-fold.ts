import type { ModelDelta } from '../../contracts/model.js'
import { isObject } from '../../util/json.js'
import { argumentsObject, argumentsText } from '../wire/calls.js'
import { stringIn, without } from '../wire/read.js'
import type { Fields } from '../wire/read.js'
import type { Call } from './reply.js'

/** Adds up one content block of a stream, and emits each piece. */
export class BlockFold {
  readonly #start: Fields
  /** The final id of a call of the harness; empty for any other block. */
  readonly #callId: string
  readonly #onDelta: ((delta: ModelDelta) => void) | undefined
  /** Text of a text block or of a thinking block. */
  #text = ''
  #input = ''
  #signature: string
  readonly #citations: unknown[]
  #other: Fields = {}
  #isTouched = false

  constructor(start: Fields, callId: string, onDelta: ((delta: ModelDelta) => void) | undefined) {
    this.#start = start
    this.#onDelta = onDelta
    this.#callId = callId
    this.#signature = stringIn(start['signature'])
    this.#citations = Array.isArray(start['citations']) ? [...(start['citations'] as readonly unknown[])] : []
    if (start['type'] === 'text') this.#emit('text_delta', stringIn(start['text']))
    if (start['type'] === 'thinking') this.#emit('reasoning_delta', stringIn(start['thinking']))
  }

  /** The call of a `tool_use` block. */
  get call(): Call | null {
    return this.#callId === '' ? null : { callId: this.#callId, arguments: this.#input === '' ? '{}' : this.#input }
  }

  /** True if `start` repeats the start of this block. */
  isBegunBy(start: Fields): boolean {
    if (start['type'] !== this.#start['type'] || start['id'] !== this.#start['id']) return false
    return !this.#isTouched || start['id'] !== undefined
  }

  extend(delta: Fields): void {
    this.#isTouched = true
    const { type } = this.#start
    switch (delta['type']) {
      case 'text_delta':
        if (type === 'text') this.#emit('text_delta', stringIn(delta['text']))
        else this.#keep(delta)
        return
      case 'thinking_delta':
        if (type === 'thinking') this.#emit('reasoning_delta', stringIn(delta['thinking']))
        else this.#keep(delta)
        return
      case 'input_json_delta':
        this.#addInput(stringIn(delta['partial_json']))
        return
      case 'signature_delta':
        this.#signature += stringIn(delta['signature'])
        return
      case 'citations_delta':
        this.#citations.push(delta['citation'])
        return
      default:
        this.#keep(delta)
    }
  }

  /** The block is complete. Input that came with the start is emitted now if no piece of it was. */
  close(): void {
    const { input } = this.#start
    if (this.#callId === '' || this.#input !== '' || !isObject(input) || Object.keys(input).length === 0) return
    this.#addInput(argumentsText(input))
  }

  /** The block as in an unstreamed reply. */
  finish(): Fields {
    const block = { ...this.#start, ...this.#other }
    switch (this.#start['type']) {
      case 'text':
        return { ...block, text: this.#text, ...(this.#citations.length > 0 && { citations: this.#citations }) }
      case 'thinking':
        return { ...block, thinking: this.#text, signature: this.#signature }
      default:
        return this.#input === '' ? block : { ...block, input: argumentsObject(this.#input) }
    }
  }

  #emit(kind: 'text_delta' | 'reasoning_delta', text: string): void {
    if (text === '') return
    this.#text += text
    this.#onDelta?.({ kind, text })
  }

  /** A piece of an unknown field. */
  #keep(delta: Fields): void {
    const pieces = Object.entries(without(delta, 'type'))
    const sums = pieces.map(([name, piece]) => [name, added(this.#other[name] ?? this.#start[name], piece)] as const)
    this.#other = { ...this.#other, ...Object.fromEntries(sums) }
  }

  #addInput(text: string): void {
    if (text === '') return
    this.#input += text
    if (this.#callId === '') return
    const toolName = stringIn(this.#start['name'])
    this.#onDelta?.({ kind: 'tool_input_delta', text, callId: this.#callId, ...(toolName !== '' && { toolName }) })
  }
}

/** The sum of two pieces: strings and lists are appended; any other value is replaced. */
function added(earlier: unknown, later: unknown): unknown {
  if (typeof earlier === 'string' && typeof later === 'string') return earlier + later
  if (Array.isArray(earlier) && Array.isArray(later)) return [...(earlier as unknown[]), ...(later as unknown[])]
  return later
}
