import { createParser } from 'eventsource-parser'
import type { EventSourceMessage, EventSourceParser } from 'eventsource-parser'
import { errorFromBody, providerError } from './provider-errors.js'
import type { HarnessError } from '#contracts/errors.js'
import { nodeModule } from '#util/platform/node.js'
import { withoutSecrets } from '#util/secrets.js'
import type { WireChunk } from './wire-format.js'

/** Longest event, in characters. */
const LONGEST_EVENT = 64 * 1024 * 1024
const BYTE_ORDER_MARK = '\uFEFF'

/**
 * Reads server-sent events with JSON data from bytes, however they are cut. All events that a piece of bytes completes are
 * returned together. Events without data are skipped.
 */
export class EventReader {
  /** The failure of the stream, set after the events before it were returned. Nothing is read after it. */
  failure: HarnessError | null = null
  /** `[DONE]` was read. */
  isDone = false
  readonly #decode = pieceDecoder()
  readonly #parser: EventSourceParser
  #hasBegun = false
  #hasEnded = false
  /** Events that are complete and not parsed. */
  #events: EventSourceMessage[] = []
  #isTooLong = false

  constructor() {
    this.#parser = createParser({
      maxBufferSize: LONGEST_EVENT,
      onEvent: (event) => this.#events.push(event),
      onError: ({ type }) => {
        if (type === 'max-buffer-size-exceeded') this.#isTooLong = true
      },
    })
  }

  push(bytes: Uint8Array): readonly WireChunk[] {
    return this.#read(this.#decode(bytes))
  }

  /** The stream has ended. A complete last event counts even if its blank line is missing. */
  end(): readonly WireChunk[] {
    this.#hasEnded = true
    return this.#read(`${this.#decode(null)}\n\n`)
  }

  #read(text: string): readonly WireChunk[] {
    if (this.failure !== null || text === '') return []
    this.#parser.feed(this.#hasBegun || !text.startsWith(BYTE_ORDER_MARK) ? text : text.slice(1))
    this.#hasBegun = true
    // All lines are cut before the first event is parsed: V8 compiles two short loops sooner than one long one.
    const events = this.#events
    this.#events = []
    const chunks = this.#parsed(events)
    if (this.#isTooLong) {
      this.failure ??= providerError(`The provider sent a stream event of more than ${LONGEST_EVENT} characters.`, {
        failure: 'server',
      })
    }
    return chunks
  }

  #parsed(events: readonly EventSourceMessage[]): readonly WireChunk[] {
    const chunks: WireChunk[] = []
    for (const { event = null, data } of events) {
      if (data.startsWith('[DONE]')) {
        this.isDone = true
        chunks.push({ event, data: null })
        continue
      }
      if (!/\S/.test(data)) continue
      try {
        chunks.push({ event, data: JSON.parse(data) as unknown })
      } catch (cause) {
        // If the last event was cut off, the fold reports the missing end of the reply.
        if (!this.#hasEnded) this.failure = notJson(event, data, cause)
        break
      }
    }
    return chunks
  }
}

let strings: ReturnType<typeof nodeModule<'node:string_decoder'>>

/** Text of bytes that come in pieces; null is the end. */
function pieceDecoder(): (bytes: Uint8Array | null) => string {
  strings ??= nodeModule('node:string_decoder')
  if (strings === undefined) {
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    return (bytes) => (bytes === null ? decoder.decode() : decoder.decode(bytes, { stream: true }))
  }
  // Several times as fast as a `TextDecoder` that is given one chunk at a time.
  const decoder = new strings.StringDecoder('utf8')
  return (bytes) => (bytes === null ? decoder.end() : decoder.write(bytes))
}

/** An error event may contain plain text; any other event without JSON means a broken stream. */
function notJson(event: string | null, data: string, cause: unknown): HarnessError {
  if (event === 'error') return errorFromBody(200, {}, data)
  const message = `The provider sent a stream event that is not JSON: ${withoutSecrets(data).slice(0, 200)}`
  return providerError(message, { cause, retryable: true, failure: 'server' })
}
