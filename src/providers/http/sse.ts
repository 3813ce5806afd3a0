import { bufferOf, joinedBytes } from '../../util/bytes.js'
import { errorFromBody, providerError } from './errors.js'
import type { HarnessError } from '../../contracts/errors.js'
import type { WireChunk } from './wire.js'

/** Longest event, in bytes. */
const LONGEST_EVENT = 64 * 1024 * 1024

const LF = 10
const CR = 13

/**
 * Server-sent events out of bytes, however they are cut: whole lines are cut out of each piece of bytes and decoded at
 * once, and all events that are complete with it are handed over together. Linear in the bytes. Lines end with LF, CR or
 * CRLF; comments and fields other than `event` and `data` are passed over, as are events without data.
 */
export class EventReader {
  /** What is wrong with the stream, behind the events that were handed over. Nothing is read any more. */
  failure: HarnessError | null = null
  /** `[DONE]` has come. */
  isDone = false
  /** The bytes of a line that has not ended. */
  #held: Uint8Array[] = []
  #heldLength = 0
  /** The last byte was CR: an LF that comes next belongs to it. */
  #endedWithCr = false
  #isFirstLine = true
  #event: string | null = null
  #data: string | null = null
  #events: WireChunk[] = []

  push(bytes: Uint8Array): readonly WireChunk[] {
    const buffer = bufferOf(this.#endedWithCr && bytes[0] === LF ? bytes.subarray(1) : bytes)
    if (bytes.length > 0) this.#endedWithCr = false
    const end = Math.max(buffer.lastIndexOf(LF), buffer.lastIndexOf(CR)) + 1
    if (end === 0) {
      this.#hold(buffer)
      return this.#handOver()
    }
    this.#endedWithCr = end === buffer.length && buffer[end - 1] === CR
    const text = this.#decode(buffer.subarray(0, end))
    this.#hold(buffer.subarray(end))
    this.#readLines(text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text)
    return this.#handOver()
  }

  /** The stream has ended. A last event whose blank line is missing counts when it is whole. */
  end(): readonly WireChunk[] {
    if (this.#heldLength > 0) this.#readLines(`${this.#decode(new Uint8Array(0))}\n`)
    if (this.failure === null && this.#data !== null && isWhole(this.#data)) this.#dispatch()
    return this.#handOver()
  }

  #hold(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.#held.push(bytes)
    this.#heldLength += bytes.length
    this.#checkLength(this.#heldLength + (this.#data?.length ?? 0))
  }

  #decode(bytes: Buffer | Uint8Array): string {
    const whole = this.#heldLength === 0 ? bufferOf(bytes) : joinedBytes([...this.#held, bytes])
    this.#held = []
    this.#heldLength = 0
    const text = whole.toString('utf8')
    if (!this.#isFirstLine) return text
    this.#isFirstLine = false
    return text.startsWith('\uFEFF') ? text.slice(1) : text
  }

  /** `text` ends with a line end. */
  #readLines(text: string): void {
    let from = 0
    for (let to = text.indexOf('\n'); to >= 0 && this.failure === null; to = text.indexOf('\n', from)) {
      if (to === from) this.#dispatch()
      else if (text.startsWith('data:', from)) this.#addData(text.slice(valueStart(text, from + 5), to))
      else if (text.startsWith('event:', from)) this.#event = text.slice(valueStart(text, from + 6), to)
      from = to + 1
    }
  }

  #addData(value: string): void {
    this.#data = this.#data === null ? value : `${this.#data}\n${value}`
    this.#checkLength(this.#data.length)
  }

  #dispatch(): void {
    const event = this.#event
    const data = this.#data
    this.#event = null
    this.#data = null
    if (data === null) return
    if (data.startsWith('[DONE]')) {
      this.isDone = true
      this.#events.push({ event, data: null })
      return
    }
    try {
      this.#events.push({ event, data: JSON.parse(data) as unknown })
    } catch (cause) {
      if (data.trim() !== '') this.failure = notJson(event, data, cause)
    }
  }

  #checkLength(length: number): void {
    if (length <= LONGEST_EVENT) return
    this.failure = providerError(`The provider sent a stream event of more than ${LONGEST_EVENT} bytes.`, {})
    this.#held = []
    this.#heldLength = 0
    this.#data = null
  }

  #handOver(): readonly WireChunk[] {
    const events = this.#events
    this.#events = []
    return events
  }
}

/** One space behind the colon is no part of the value. */
function valueStart(text: string, at: number): number {
  return text.charCodeAt(at) === 32 ? at + 1 : at
}

function isWhole(data: string): boolean {
  if (data.startsWith('[DONE]')) return true
  try {
    JSON.parse(data)
    return true
  } catch {
    return false
  }
}

/** An error event may say in plain text what is wrong; any other event without JSON is a broken stream. */
function notJson(event: string | null, data: string, cause: unknown): HarnessError {
  if (event === 'error') return errorFromBody(200, {}, data)
  const message = `The provider sent a stream event that is not JSON: ${data.slice(0, 200)}`
  return providerError(message, { cause, retryable: true })
}
