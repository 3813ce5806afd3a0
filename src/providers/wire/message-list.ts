import type { JsonObject } from '../../util/json.js'
import type { Transport } from '../http/wire.js'

/**
 * The messages of a conversation, in the form that the transport takes. As bytes they only grow: each message is
 * serialized when it joins and never again, so that the cost of a turn does not grow with the conversation.
 */
export class MessageList {
  readonly #form: Transport['bodies']
  readonly #field: string
  #head: JsonObject = {}
  #messages: JsonObject[] = []
  #headBytes = NO_BYTES
  #bytes = NO_BYTES
  #length = 0

  constructor(form: Transport['bodies'], conversationField: string) {
    this.#form = form
    this.#field = conversationField
  }

  /** Drops everything and begins anew behind `head`. */
  open(head: JsonObject, messages: readonly JsonObject[]): void {
    this.#head = head
    if (this.#form === 'json') {
      this.#messages = [...messages]
      return
    }
    this.#headBytes = this.#opening(head)
    // What was sent may still be on its way: its bytes are not written over.
    this.#bytes = NO_BYTES
    this.#length = 0
    this.append(messages)
  }

  append(messages: readonly JsonObject[]): void {
    for (const message of messages) {
      if (this.#form === 'json') this.#messages.push(message)
      else this.#write(`${this.#length === 0 ? '' : ','}${JSON.stringify(message)}`)
    }
  }

  /** The whole body, `tail` behind the messages. Bytes come in pieces, to be sent one after the other. */
  finish(tail: JsonObject): readonly Uint8Array[] | JsonObject {
    if (this.#form === 'json') return { ...this.#head, [this.#field]: [...this.#messages], ...tail }
    const fields = JSON.stringify(tail).slice(1)
    const closing = Buffer.from(fields.length > 1 ? `],${fields}` : ']}')
    return [this.#headWithout(tail), this.#bytes.subarray(0, this.#length), closing]
  }

  /** A field that the tail has too is said once, there: not every server takes the last of two. */
  #headWithout(tail: JsonObject): Uint8Array {
    if (!Object.keys(tail).some((name) => name in this.#head)) return this.#headBytes
    return this.#opening(Object.fromEntries(Object.entries(this.#head).filter(([name]) => !(name in tail))))
  }

  #opening(head: JsonObject): Buffer<ArrayBuffer> {
    const fields = JSON.stringify(head).slice(0, -1)
    const separator = fields.length > 1 ? ',' : ''
    return Buffer.from(`${fields}${separator}${JSON.stringify(this.#field)}:[`)
  }

  #write(text: string): void {
    const needed = this.#length + Buffer.byteLength(text)
    if (needed > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2, SMALLEST))
      this.#bytes.copy(grown, 0, 0, this.#length)
      this.#bytes = grown
    }
    this.#length += this.#bytes.write(text, this.#length)
  }
}

/** First size of the buffer, in bytes. */
const SMALLEST = 4096
const NO_BYTES = Buffer.alloc(0)
