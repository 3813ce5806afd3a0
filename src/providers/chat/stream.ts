import type { TokenUsage } from '#contracts/entry.js'
import type { ModelDelta } from '#core/model-session.js'
import { isObject, parseJson } from '#util/json.js'
import { errorFromBody } from '../http/provider-errors.js'
import type { DecodedReply, ReplyFoldOptions, ReplyFold, WireChunk } from '../http/wire-format.js'
import { argumentsText } from '../wire/call-ids.js'
import { StreamedCall, StreamedCalls } from '../wire/repeated-calls.js'
import type { EmitArguments } from '../wire/repeated-calls.js'
import { isFilled, objectsIn, stringIn, without } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import { REASONING_FIELDS } from './dialect.js'
import { cutReply, decodeReply, rejectError, rejectErrorIn, chatUsage, textOfDetail } from './reply.js'

/** Adds up the chunks of a stream to a reply, which is then decoded like a whole one. */
export class ChatFold implements ReplyFold {
  readonly #provider: string
  readonly #content: ContentFold
  readonly #reasoning: ReasoningFold
  readonly #calls: CallsFold
  /** A call of the old form, which has no id. */
  readonly #oldCall: CallsFold
  readonly #refusal: string[] = []
  /** Pieces of other fields, by name. */
  readonly #others = new Map<string, unknown[]>()
  #head: WireFields = {}
  #usage: unknown = null
  #finish: WireFields = {}
  #hasChoice = false
  #hasDelta = false
  #isDone = false

  constructor(provider: string, { callIdFor, onDelta }: ReplyFoldOptions) {
    const emit = (kind: ModelDelta['kind']) => (text: string) => onDelta?.({ kind, text })
    const emitCall = (text: string, callId: string, toolName: string) =>
      onDelta?.({ kind: 'tool_input_delta', text, callId, ...(toolName !== '' && { toolName }) })
    this.#provider = provider
    this.#content = new ContentFold(emit('text_delta'), emit('reasoning_delta'))
    this.#reasoning = new ReasoningFold(emit('reasoning_delta'))
    this.#calls = new CallsFold(callIdFor, emitCall)
    this.#oldCall = new CallsFold(callIdFor, emitCall)
  }

  get isComplete(): boolean {
    return this.#finish['finish_reason'] !== undefined
  }

  get usage(): TokenUsage {
    return chatUsage(this.#usage)
  }

  add({ event, data }: WireChunk): void {
    if (data === null) {
      this.#isDone = true
      return
    }
    if (event === 'error') throw errorFromBody(200, {}, data)
    rejectError(data)
    if (!isObject(data)) return
    this.#addHead(data)
    for (const choice of objectsIn(data['choices'])) {
      if ((choice['index'] ?? 0) === 0) this.#addChoice(choice)
    }
  }

  end(): DecodedReply {
    if (this.#finish['finish_reason'] === undefined && !(this.#isDone && this.#hasChoice)) throw cutReply()
    const { calls, ids } = this.#calls.end()
    const old = this.#oldCall.end()
    const message = this.#message(calls, old.calls[0])
    const choice = { index: 0, message, ...this.#finish }
    const reply = { ...this.#head, object: 'chat.completion', choices: [choice], usage: this.#usage }
    return decodeReply(reply, this.#provider, (_id, index) => (calls.length > 0 ? ids : old.ids)[index] ?? '')
  }

  #message(calls: readonly unknown[], old: WireFields | undefined): WireFields {
    return {
      role: 'assistant',
      content: this.#content.value(),
      ...this.#reasoning.value(),
      ...(this.#refusal.length > 0 && { refusal: this.#refusal.join('') }),
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(old !== undefined && { function_call: old['function'] }),
      ...Object.fromEntries([...this.#others].map(([name, pieces]) => [name, mergedPieces(pieces)])),
    }
  }

  /** The fields that all chunks repeat, from the first chunk with an id and a model; and the last usage. */
  #addHead(data: WireFields): void {
    if (stringIn(this.#head['id']) === '' || stringIn(this.#head['model']) === '') {
      this.#head = { ...this.#head, ...without(data, 'choices', 'usage', 'object') }
    }
    const { usage, x_groq: groq } = data
    if (isFilled(usage)) this.#usage = usage
    if (!isObject(groq)) return
    rejectErrorIn(groq)
    if (!isFilled(usage) && isFilled(groq['usage'])) this.#usage = groq['usage']
  }

  #addChoice(choice: WireFields): void {
    this.#hasChoice = true
    rejectErrorIn(choice)
    const { delta, message } = choice
    if (isObject(delta)) this.#addDelta(delta)
    // A whole message repeats the deltas, unless there were none.
    else if (isObject(message) && !this.#hasDelta) this.#addDelta(message)
    if (stringIn(choice['finish_reason']) !== '') {
      const { finish_reason, native_finish_reason } = choice
      this.#finish = { finish_reason, ...(native_finish_reason !== undefined && { native_finish_reason }) }
    }
    if (isFilled(choice['usage'])) this.#usage = choice['usage']
  }

  #keep(name: string, piece: unknown): void {
    const pieces = this.#others.get(name)
    if (pieces === undefined) this.#others.set(name, [piece])
    else pieces.push(piece)
  }

  #addDelta(delta: WireFields): void {
    this.#hasDelta = true
    for (const name in delta) {
      const value = delta[name]
      if (value === null || value === '') continue
      switch (name) {
        case 'content':
          this.#content.add(value)
          break
        case 'reasoning_content':
        case 'reasoning':
        case 'reasoning_details':
          this.#reasoning.add(name, value, delta)
          break
        case 'tool_calls':
          this.#calls.add(value)
          break
        case 'function_call':
          this.#oldCall.add([{ index: 0, function: value }])
          break
        case 'refusal':
          if (typeof value === 'string') this.#refusal.push(value)
          break
        default:
          if (isFilled(value)) this.#keep(name, value)
      }
    }
  }
}

type EmitText = (text: string) => void

type Item =
  | { readonly kind: 'text'; readonly pieces: string[] }
  | { readonly kind: 'thinking'; fields: WireFields; readonly content: ContentFold }
  | { readonly kind: 'block'; readonly block: unknown }

/** Adds up the content of a streamed message, which consists of strings, lists of blocks, or both. */
class ContentFold {
  readonly #emit: EmitText
  readonly #emitThinking: EmitText
  readonly #items: Item[] = []
  #hasBlocks = false

  constructor(emit: EmitText, emitThinking: EmitText) {
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
    if (this.#hasBlocks) return this.#items.map(wireBlock)
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

  #addThinking({ thinking, ...fields }: WireFields): void {
    let last = this.#items.at(-1)
    if (last?.kind !== 'thinking') {
      last = { kind: 'thinking', fields, content: new ContentFold(this.#emitThinking, this.#emitThinking) }
      this.#items.push(last)
    }
    last.fields = { ...last.fields, ...fields }
    last.content.add(thinking)
  }
}

function wireBlock(item: Item): unknown {
  switch (item.kind) {
    case 'text':
      return { type: 'text', text: item.pieces.join('') }
    case 'thinking':
      return { ...item.fields, thinking: item.content.value() ?? [] }
    case 'block':
      return item.block
  }
}

/**
 * Adds up the tool calls of a streamed message. Servers assign a piece to its call in different ways: by id, by index, by
 * neither (a name then begins a call), or by an index that is repeated for the next call.
 */
class CallsFold {
  readonly #calls: StreamedCalls<CallFold>
  readonly #byIndex = new Map<unknown, CallFold>()

  constructor(callIdFor: (index: number) => string, emit: EmitArguments) {
    this.#calls = new StreamedCalls(callIdFor, emit)
  }

  add(pieces: unknown): void {
    for (const piece of objectsIn(pieces)) this.#addPiece(readPiece(piece))
  }

  /** The calls of the message, and their final ids. */
  end(): { readonly calls: readonly WireFields[]; readonly ids: readonly string[] } {
    const calls = this.#calls.end((kept, other) => kept.absorb(other))
    return { calls: calls.map((call) => call.value()), ids: calls.map((call) => this.#calls.idOf(call)) }
  }

  #addPiece(piece: Piece): void {
    const known = this.#callOf(piece)
    const call = known ?? this.#calls.begin(new CallFold(), piece.id)
    const isTelling = known === undefined || piece.id !== '' || piece.name !== '' || piece.text !== ''
    if (piece.index !== null && isTelling) this.#byIndex.set(piece.index, call)
    const text = call.take(piece)
    if (text !== '') this.#calls.grow(call, text)
  }

  /** The call that a piece continues; undefined if it begins one. */
  #callOf(piece: Piece): CallFold | undefined {
    const { id, index, name, text } = piece
    const placed = index === null ? undefined : this.#byIndex.get(index)
    const isInPlace = placed !== undefined && (id === '' || placed.id === '' || placed.id === id)
    const named = isInPlace ? undefined : this.#calls.named(id)
    if (named !== undefined) return named.isContinuedBy(piece) ? named : undefined
    if (placed !== undefined) return placed.isFollowedBy(piece) ? undefined : placed
    const last = this.#calls.all.at(-1)
    const isOther =
      index === null ? name !== '' && last?.name !== '' : name !== '' || (text !== '' && last?.isComplete === true)
    return isOther || (id !== '' && (index !== null || last?.id !== '')) ? undefined : last
  }
}

/** A piece of a call; absent fields are empty. */
interface Piece {
  readonly index: unknown
  readonly id: string
  readonly type: string
  readonly name: string
  readonly text: string
  readonly others: WireFields
}

function readPiece({ index, id, type, function: func, custom, ...others }: WireFields): Piece {
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

class CallFold extends StreamedCall {
  #type = ''
  #others: WireFields = {}

  get isComplete(): boolean {
    return this.text.endsWith('}') && parseJson(this.text).ok
  }

  /** True if `piece`, at the same index, begins another call: it has another id, or a beginning of its own. */
  isFollowedBy({ id, name, text }: Piece): boolean {
    if (name === '' || this.name === '') return false
    if (id !== '' && this.id !== '') return id !== this.id
    return id === '' && text.startsWith('{') && this.isComplete
  }

  /** True if `piece`, with the same id at another index or none, continues this call: it does not begin it again. */
  isContinuedBy({ index, name, text }: Piece): boolean {
    return (index === null || name === '') && (text === '' || !this.isComplete)
  }

  /** Reads a piece, and returns the new text of its arguments. */
  take({ id, type, name, text, others }: Piece): string {
    if (this.id === '') this.id = id
    if (type !== '') this.#type = type
    this.isCustom = this.#type === 'custom'
    if (name !== this.name && this.text === '') this.name += name
    if (isFilled(others)) this.#others = mergePieces(this.#others, others) as WireFields
    return this.#isRepeated(text) ? '' : text
  }

  /** The other fields of a call that is a part of this one. */
  absorb(other: CallFold): void {
    this.#others = mergePieces(this.#others, other.#others) as WireFields
  }

  value(): WireFields {
    const { id, name, text } = this
    const body = this.isCustom ? { custom: { name, input: text } } : { function: { name, arguments: text } }
    return { id, type: this.#type || 'function', ...body, ...this.#others }
  }

  /** True if `text` repeats the whole arguments, as in a last chunk with the sum. */
  #isRepeated(text: string): boolean {
    return text.length === this.text.length && text.startsWith('{') && text === this.text && this.isComplete
  }
}

/** Adds up the reasoning of a streamed message: plain text by field, and the entries of `reasoning_details`. */
class ReasoningFold {
  readonly #emit: (text: string) => void
  readonly #texts = new Map<string, string[]>()
  readonly #details: DetailFold[] = []

  constructor(emit: (text: string) => void) {
    this.#emit = emit
  }

  /** `name` is a field of `delta`. Text that several fields repeat is emitted once. */
  add(name: string, value: unknown, delta: WireFields): void {
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

  value(): WireFields {
    const texts = [...this.#texts].map(([name, pieces]): [string, unknown] => [name, pieces.join('')])
    const details = this.#details.map((detail) => detail.value())
    return { ...Object.fromEntries<unknown>(texts), ...(details.length > 0 && { reasoning_details: details }) }
  }

  #addDetail(detail: WireFields, isEmitted: boolean): void {
    const known = this.#details.findLast((other) => other.isContinuedBy(detail))
    if (known === undefined) this.#details.push(new DetailFold(detail))
    else known.add(detail)
    const text = textOfDetail(detail)
    if (isEmitted && text !== '') this.#emit(text)
  }
}

/** One entry of `reasoning_details`; its pieces have the same type and index, and the same id or none. */
class DetailFold {
  #fields: WireFields
  readonly #pieces: Readonly<Record<'text' | 'summary', string[]>> = { text: [], summary: [] }

  constructor(fields: WireFields) {
    this.#fields = {}
    this.add(fields)
  }

  isContinuedBy({ type, index, id }: WireFields): boolean {
    const { type: ownType, index: ownIndex, id: ownId } = this.#fields
    const sameId = stringIn(id) === '' || stringIn(ownId) === '' || id === ownId
    return type === ownType && (index ?? null) === (ownIndex ?? null) && sameId
  }

  add({ text, summary, ...fields }: WireFields): void {
    if (typeof text === 'string') this.#pieces.text.push(text)
    if (typeof summary === 'string') this.#pieces.summary.push(summary)
    if (Object.keys(fields).every((name) => fields[name] === this.#fields[name])) return
    this.#fields = mergePieces(this.#fields, fields) as WireFields
  }

  value(): WireFields {
    const { text, summary } = this.#pieces
    return {
      ...this.#fields,
      ...(text.length > 0 && { text: text.join('') }),
      ...(summary.length > 0 && { summary: summary.join('') }),
    }
  }
}

/** Members that identify an object: a later piece repeats them. */
const NAMES: ReadonlySet<string> = new Set(['id', 'type', 'index', 'format', 'role'])

/** The sum of the pieces of a stream. */
function mergedPieces(pieces: readonly unknown[]): unknown {
  if (pieces.every((piece) => Array.isArray(piece))) return pieces.flat()
  return pieces.reduce((value, piece) => mergePieces(value, piece))
}

/**
 * A value of a stream with its next piece: strings and lists are appended, objects are merged, repetitions are ignored.
 * For fields of unknown meaning.
 */
function mergePieces(value: unknown, piece: unknown): unknown {
  if (piece === null) return value
  if (typeof value === 'string' && typeof piece === 'string') return value === piece ? value : value + piece
  if (Array.isArray(value) && Array.isArray(piece)) return [...(value as unknown[]), ...(piece as unknown[])]
  if (!isObject(value) || !isObject(piece)) return piece
  const merged: Record<string, unknown> = { ...value }
  for (const [name, part] of Object.entries(piece)) {
    const isName = NAMES.has(name) && part !== null
    Object.defineProperty(merged, name, {
      value: isName ? part : mergePieces(Object.hasOwn(value, name) ? value[name] : undefined, part),
      enumerable: true,
      configurable: true,
      writable: true,
    })
  }
  return merged
}
