import type { ModelDelta } from '../../contracts/model.js'
import { isObject } from '../../util/json.js'
import { argumentsOf, inputOf } from './calls.js'
import type { CallIds, NamedCall } from './calls.js'
import { without } from './without.js'

type WireObject = Readonly<Record<string, unknown>>

/** Adds up one content block of a stream, and tells each piece as it comes. */
export class BlockFold {
  readonly #start: WireObject
  /** Empty: the block is no call of ours. */
  readonly #callId: string
  readonly #onDelta: ((delta: ModelDelta) => void) | undefined
  /** Text of a text block, thoughts of a thinking block. */
  #text = ''
  #input = ''
  #signature: string
  readonly #citations: unknown[]
  #other: WireObject = {}
  #isTouched = false

  constructor(start: WireObject, ids: CallIds, onDelta: ((delta: ModelDelta) => void) | undefined) {
    this.#start = start
    this.#onDelta = onDelta
    this.#callId = start['type'] === 'tool_use' ? ids.next(start['id']) : ''
    this.#signature = textOf(start['signature'])
    this.#citations = Array.isArray(start['citations']) ? [...(start['citations'] as readonly unknown[])] : []
    if (start['type'] === 'text') this.#tell('text_delta', textOf(start['text']))
    if (start['type'] === 'thinking') this.#tell('reasoning_delta', textOf(start['thinking']))
  }

  /** The call that a `tool_use` block makes. */
  get call(): NamedCall {
    return { callId: this.#callId, arguments: this.#input === '' ? '{}' : this.#input }
  }

  /** Whether `start` begins this very block once more. */
  isBegunBy(start: WireObject): boolean {
    if (start['type'] !== this.#start['type'] || start['id'] !== this.#start['id']) return false
    return !this.#isTouched || start['id'] !== undefined
  }

  extend(delta: WireObject): void {
    this.#isTouched = true
    const { type } = this.#start
    switch (delta['type']) {
      case 'text_delta':
        if (type === 'text') this.#tell('text_delta', textOf(delta['text']))
        else this.#keep(delta)
        return
      case 'thinking_delta':
        if (type === 'thinking') this.#tell('reasoning_delta', textOf(delta['thinking']))
        else this.#keep(delta)
        return
      case 'input_json_delta':
        this.#take(textOf(delta['partial_json']))
        return
      case 'signature_delta':
        this.#signature += textOf(delta['signature'])
        return
      case 'citations_delta':
        this.#citations.push(delta['citation'])
        return
      default:
        this.#keep(delta)
    }
  }

  /** No more is to come. Input that came with the start, all at once, is told now that no piece of it has come. */
  close(): void {
    const { input } = this.#start
    if (this.#callId === '' || this.#input !== '' || !isObject(input) || Object.keys(input).length === 0) return
    this.#take(argumentsOf(input))
  }

  /** The block as an unstreamed reply has it. */
  finish(): WireObject {
    const block = { ...this.#start, ...this.#other }
    switch (this.#start['type']) {
      case 'text':
        return { ...block, text: this.#text, ...(this.#citations.length > 0 && { citations: this.#citations }) }
      case 'thinking':
        return { ...block, thinking: this.#text, signature: this.#signature }
      default:
        return this.#input === '' ? block : { ...block, input: inputOf(this.#input) }
    }
  }

  #tell(kind: 'text_delta' | 'reasoning_delta', text: string): void {
    if (text === '') return
    this.#text += text
    this.#onDelta?.({ kind, text })
  }

  /** A piece of what is not known here. */
  #keep(delta: WireObject): void {
    const pieces = Object.entries(without(delta, 'type'))
    const sums = pieces.map(([name, piece]) => [name, added(this.#other[name] ?? this.#start[name], piece)] as const)
    this.#other = { ...this.#other, ...Object.fromEntries(sums) }
  }

  #take(text: string): void {
    if (text === '') return
    this.#input += text
    if (this.#callId === '') return
    const toolName = textOf(this.#start['name'])
    this.#onDelta?.({ kind: 'tool_input_delta', text, callId: this.#callId, ...(toolName !== '' && { toolName }) })
  }
}

/** What two pieces add up to: texts and lists grow, of anything else the later counts. */
function added(earlier: unknown, later: unknown): unknown {
  if (typeof earlier === 'string' && typeof later === 'string') return earlier + later
  if (Array.isArray(earlier) && Array.isArray(later)) return [...(earlier as unknown[]), ...(later as unknown[])]
  return later
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
