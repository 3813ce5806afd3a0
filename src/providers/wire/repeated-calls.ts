import { isObject, parseJson } from '#util/json.js'
import { customArguments, ReplyCallIds } from './call-ids.js'

/** A call as its server names it; absent members are empty. */
export interface WireCall {
  readonly id: string
  readonly name: string
  /** Its arguments. */
  readonly text: string
}

/** So many calls are compared with each other: a reply that has more is refused as a whole. */
const MOST_COMPARED = 1000
/** So often it is tried whether calls are pieces of one: each time, all pieces are read. */
const MOST_JOINS = 100_000

/**
 * True if two calls of a reply are one that its server sent twice: the same id and name, and equal arguments or none. A name
 * without an id and arguments announces a call.
 */
function isSameCall(one: WireCall, other: WireCall): boolean {
  if (one.name !== other.name && one.name !== '' && other.name !== '') return false
  if (isAnnouncement(one, other) || isAnnouncement(other, one)) return true
  if (one.id === '' || one.id !== other.id) return false
  const texts = [one.text, other.text].map(comparable)
  return texts[0] === texts[1] || texts.includes('{}')
}

function isAnnouncement(one: WireCall, other: WireCall): boolean {
  return one.id === '' && one.text === '' && one.name !== '' && one.name === other.name && other.text !== ''
}

function comparable(text: string): string {
  const parsed = text.trim() === '' ? { ok: true, value: {} } : parseJson(text)
  return parsed.ok ? JSON.stringify(parsed.value) : text
}

function isWhole(text: string): boolean {
  const parsed = parseJson(text)
  return parsed.ok && isObject(parsed.value)
}

/**
 * `items` without the calls that repeat another one of the list. `read`: null for an item that is no call. `onWhole` gets each call
 * that takes the place of one without arguments.
 */
export function withoutRepeatedCalls<T>(
  items: readonly T[],
  read: (item: T) => WireCall | null,
  onWhole: (whole: T, announced: T) => void = () => undefined,
): readonly T[] {
  const calls: { place: number; call: WireCall }[] = []
  const kept: T[] = []
  for (const item of items) {
    const call = read(item)
    const isCompared = call !== null && calls.length <= MOST_COMPARED
    const known = isCompared ? calls.find((other) => isSameCall(other.call, call)) : undefined
    if (call === null || known === undefined) {
      if (call !== null) calls.push({ place: kept.length, call })
      kept.push(item)
      continue
    }
    if (comparable(known.call.text) !== '{}' || comparable(call.text) === '{}') continue
    for (const announced of kept.slice(known.place, known.place + 1)) onWhole(item, announced)
    kept[known.place] = item
    known.call = call
  }
  return kept
}

/** One call of a streamed reply. */
export class StreamedCall implements WireCall {
  id = ''
  name = ''
  text = ''
  /** Its input is plain text, which is emitted as JSON at the end. */
  isCustom = false
  /** Unique in the reply, once it is needed. */
  finalId: string | null = null
  /** Characters of the text that were emitted. */
  emitted = 0
}

/** `callId` is final. */
export type EmitArguments = (text: string, callId: string, toolName: string) => void

/**
 * The calls of a streamed reply, with ids that are unique in it. Some servers send a call again under another number, or each
 * piece of it under a new one: what comes under a known id is emitted at the end, when it is clear whose it is.
 */
export class StreamedCalls<Call extends StreamedCall> {
  readonly all: Call[] = []
  readonly #ids: ReplyCallIds
  readonly #emit: EmitArguments
  /** How often it was tried whether calls are pieces of one. */
  #joins = 0

  constructor(callIdFor: (index: number) => string, emit: EmitArguments) {
    this.#ids = new ReplyCallIds(callIdFor)
    this.#emit = emit
  }

  /** The last call with this id of the server. */
  named(id: string): Call | undefined {
    return id === '' ? undefined : this.all.findLast((call) => call.id === id)
  }

  /** Of very many calls the first are kept, and what has their ids. */
  begin(call: Call, id = call.id): Call {
    if (this.all.length < 2 * MOST_COMPARED || this.named(id) !== undefined) this.all.push(call)
    return call
  }

  grow(call: Call, text: string): void {
    call.text += text
    if (!call.isCustom && this.all.find((other) => other === call || mayContain(other, call)) === call)
      this.#flush(call)
  }

  /** The final id of a call, the same in its deltas and its part. */
  idOf(call: Call): string {
    call.finalId ??= this.#ids.take(call.id, this.all.indexOf(call))
    return call.finalId
  }

  /** The calls, each once, all of their arguments emitted. `absorb` gets each call that is a part of another one. */
  end(absorb: (kept: Call, other: Call) => void = () => undefined): readonly Call[] {
    const kept: Call[] = []
    for (const call of this.all) {
      const compared = kept.length <= MOST_COMPARED ? kept : []
      const open = compared.find((other) => this.#isJoined(other, call))
      const known = open ?? compared.find((other) => isSameCall(other, call))
      if (known === undefined) {
        kept.push(call)
        continue
      }
      if (known.id === '') known.id = call.id
      if (known.name === '') known.name = call.name
      if (open !== undefined) known.text += call.text
      else if (comparable(known.text) === '{}' && comparable(call.text) !== '{}') {
        known.text = call.text
        if (known.emitted > 0) known.emitted = call.text.length
      }
      absorb(known, call)
    }
    for (const call of kept) this.#flush(call)
    return kept
  }

  /** True if the arguments of the calls with this id are complete only together. */
  #isJoined(one: Call, other: Call): boolean {
    if (one.id === '' || one.id !== other.id || isWhole(one.text) || this.#joins++ > MOST_JOINS) return false
    const rest = this.all.slice(this.all.indexOf(other)).filter(({ id }) => id === one.id)
    return isWhole(one.text + rest.map(({ text }) => text).join(''))
  }

  #flush(call: Call): void {
    const text = (call.isCustom ? customArguments(call.text) : call.text).slice(call.emitted)
    if (text === '') return
    this.#emit(text, this.idOf(call), call.name)
    call.emitted += text.length
  }
}

/** True if `call` may be a part of `earlier`. */
function mayContain(earlier: StreamedCall, call: StreamedCall): boolean {
  if (earlier.id !== '') return earlier.id === call.id
  return earlier.text === '' && earlier.name === call.name
}
