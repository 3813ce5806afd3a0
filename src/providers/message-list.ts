import type { JsonObject } from '../util/json.js'
import type { Transport } from './wire.js'

/**
 * The messages of a conversation, in the form that the transport takes. As bytes they only grow: each message is
 * serialized when it joins and never again, so that the cost of a turn does not grow with the conversation.
 */
export class MessageList {
  readonly #form: Transport['bodies']
  readonly #field: string
  #head: JsonObject = {}
  #messages: JsonObject[] = []
  #headBytes = Buffer.alloc(0)
  #bytes = Buffer.alloc(0)
  #length = 0

  constructor(form: Transport['bodies'], conversationField: string) {
    this.#form = form
    this.#field = conversationField
  }

  /** Drops everything and begins anew behind `head`. */
  open(head: JsonObject, messages: readonly JsonObject[]): void {
    this.#head = head
    this.#messages = []
    this.#length = 0
    const fields = JSON.stringify(head).slice(0, -1)
    const separator = fields.length > 1 ? ',' : ''
    if (this.#form === 'bytes') this.#headBytes = Buffer.from(`${fields}${separator}${JSON.stringify(this.#field)}:[`)
    this.append(messages)
  }

  append(messages: readonly JsonObject[]): void {
    if (this.#form === 'json') {
      this.#messages.push(...messages)
      return
    }
    for (const message of messages) {
      const text = `${this.#length === 0 ? '' : ','}${JSON.stringify(message)}`
      this.#reserve(Buffer.byteLength(text))
      this.#length += this.#bytes.write(text, this.#length)
    }
  }

  /** The whole body, `tail` behind the messages. Bytes come in pieces, to be sent one after the other. */
  finish(tail: JsonObject): readonly Uint8Array[] | JsonObject {
    if (this.#form === 'json') return { ...this.#head, [this.#field]: [...this.#messages], ...tail }
    const fields = JSON.stringify(tail).slice(1)
    const closing = Buffer.from(fields.length > 1 ? `],${fields}` : ']}')
    return [this.#headBytes, this.#bytes.subarray(0, this.#length), closing]
  }

  #reserve(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#bytes.length) return
    const grown = Buffer.alloc(Math.max(needed, this.#bytes.length * 2, 4096))
    this.#bytes.copy(grown, 0, 0, this.#length)
    this.#bytes = grown
  }
}
