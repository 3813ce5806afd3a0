import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import type { Transport } from '../http/wire.js'
import { without } from './read.js'

/**
 * The messages of a conversation, in the form that the transport expects. Bytes are only appended: each message is
 * serialized once, so the cost of a turn does not grow with the conversation. Strings are made well-formed: providers
 * reject a body with half of a surrogate pair, and would reject every later request of the conversation too.
 */
export class MessageList {
  readonly #form: Transport['bodies']
  readonly #field: string
  #head: JsonObject = {}
  #messages: JsonObject[] = []
  #headBytes = Buffer.alloc(0)
  #buffer = Buffer.alloc(0)
  /** Bytes of the messages in the buffer. */
  #length = 0

  constructor(form: Transport['bodies'], conversationField: string) {
    this.#form = form
    this.#field = conversationField
  }

  /** Replaces everything by `head` and `messages`. */
  open(head: JsonObject, messages: readonly JsonObject[]): void {
    this.#head = head
    if (this.#form === 'json') {
      this.#head = wellFormedJson(head)
      this.#messages = messages.map(wellFormedJson)
      return
    }
    this.#headBytes = this.#opening(head)
    // An earlier request may still be on its way: its bytes are not overwritten.
    this.#buffer = Buffer.alloc(0)
    this.#length = 0
    this.append(messages)
  }

  append(messages: readonly JsonObject[]): void {
    for (const message of messages) {
      if (this.#form === 'json') {
        this.#messages.push(wellFormedJson(message))
        continue
      }
      const text = wellFormedText(message)
      const needed = this.#length + 1 + Buffer.byteLength(text)
      if (needed > this.#buffer.length) this.#grow(needed)
      if (this.#length > 0) this.#buffer[this.#length++] = COMMA
      this.#length += this.#buffer.write(text, this.#length)
    }
  }

  /** The whole body, with `tail` after the messages. Bytes come in pieces that are sent one after the other. */
  finish(tail: JsonObject): readonly Uint8Array[] | JsonObject {
    if (this.#form === 'json') return { ...this.#head, [this.#field]: [...this.#messages], ...wellFormedJson(tail) }
    let headBytes = this.#headBytes
    // A field is sent once, in the tail: not every server uses the last of two.
    const repeated = Object.keys(tail).filter((name) => name in this.#head)
    if (repeated.length > 0) headBytes = this.#opening(without(this.#head, ...repeated))
    const fields = wellFormedText(tail).slice(1)
    const closing = Buffer.from(fields.length > 1 ? `],${fields}` : ']}')
    return [headBytes, this.#buffer.subarray(0, this.#length), closing]
  }

  #opening(head: JsonObject): Buffer<ArrayBuffer> {
    const fields = wellFormedText(head).slice(0, -1)
    const separator = fields.length > 1 ? ',' : ''
    return Buffer.from(`${fields}${separator}${JSON.stringify(this.#field)}:[`)
  }

  #grow(needed: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#length * 2, SMALLEST))
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
  }
}

const COMMA = 0x2c
/** Initial size of the buffer, in bytes. */
const SMALLEST = 4096

/** `body` as JSON text, with `\ufffd` in place of each half of a surrogate pair. */
function wellFormedText(body: JsonObject): string {
  const text = JSON.stringify(body)
  return MAYBE_HALF.test(text) ? JSON.stringify(wellFormedJson(body)) : text
}

/** The escape with which `JSON.stringify` writes half of a pair. A string may also contain it literally. */
const MAYBE_HALF = /\\ud[89a-f]/

/** `value` with `\ufffd` in place of each half of a surrogate pair; the same value if there is none. */
function wellFormedJson<T extends JsonValue>(value: T): T
function wellFormedJson(value: JsonValue): JsonValue {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return wellFormedList(value as JsonValue[])
  return isObject(value) ? objectOf(value) : value
}

function wellFormedList(list: readonly JsonValue[]): readonly JsonValue[] {
  const items = list.map((item) => wellFormedJson(item))
  return items.some((item, index) => item !== list[index]) ? items : list
}

function objectOf(object: JsonObject): JsonObject {
  const members = Object.entries(object)
  const formed = members.map(([name, value]) => {
    return [name.toWellFormed(), value === undefined ? value : wellFormedJson(value)] as const
  })
  const isChanged = formed.some(([name, value], index) => name !== members[index]?.[0] || value !== members[index][1])
  return isChanged ? Object.fromEntries(formed) : object
}
