import { messageOf } from '#contracts/errors.js'
import { isObject, parseJson } from '#util/json.js'
import { LARGEST_MESSAGE } from '../sdk/connection.js'
import { failedAnswer, soundText } from '../sdk/messages.js'
import { withBody } from '../sdk/event-streams.js'
import type { AnswerFailure } from '../sdk/messages.js'

/** A request that a reply has to answer. */
interface OpenRequest {
  readonly id: string | number
  readonly signal: AbortSignal | null
}

/**
 * The reply of a server with sound messages. A message of more than 10 MiB, and a stream of events that ends before the answer to
 * its request and cannot be resumed, become an error in place of the answer: the SDK would wait until the call times out.
 */
export function readReply(response: Response, init: RequestInit | undefined): Response {
  const kind = /^(application\/json|text\/event-stream)\b/.exec(response.headers.get('content-type') ?? '')?.[1]
  if (response.body === null || kind === undefined || !response.ok) return response
  const request = openRequest(init)
  const reader = kind === 'application/json' ? new DocumentReader(request) : new EventReader(request)
  const whole = withBody(response, readStream(response.body, reader))
  whole.headers.delete('content-length')
  return whole
}

function openRequest(init: RequestInit | undefined): OpenRequest | null {
  const request = typeof init?.body === 'string' ? parseJson(init.body) : null
  if (request?.ok !== true || !isObject(request.value)) return null
  const { id, method } = request.value
  const isRequest = method !== undefined && (typeof id === 'string' || typeof id === 'number')
  return isRequest ? { id, signal: init?.signal ?? null } : null
}

/** Reads the text of a reply piece by piece, and gives it on in another form. */
interface ReplyReader {
  take(text: string): string
  end(): string
  /** What ends the request after a failure; null if its reply is an error then. */
  failed(failure: AnswerFailure, reason: string): string | null
}

/** A message is larger than the client reads. */
class TooLarge extends Error {
  constructor() {
    super(`A message is larger than ${LARGEST_MESSAGE} bytes.`)
  }
}

function readStream(source: ReadableStream<Uint8Array>, reply: ReplyReader): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  const decoder = new TextDecoder()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const write = (text: string): void => {
        if (text !== '') controller.enqueue(Buffer.from(text))
      }
      try {
        // A pull that gives nothing is not followed by another.
        for (let text = ''; text === '';) {
          const { done, value } = await reader.read()
          text = reply.take(decoder.decode(value, { stream: !done })) + (done ? reply.end() : '')
          write(text)
          if (!done) continue
          controller.close()
          return
        }
        return
      } catch (error) {
        void reader.cancel(error).catch(() => undefined)
        const end = reply.failed(error instanceof TooLarge ? 'too_large' : 'closed', messageOf(error))
        if (end === null) {
          controller.error(error)
          return
        }
        write(end)
      }
      controller.close()
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

/** A reply of one document of JSON. */
class DocumentReader implements ReplyReader {
  readonly #request: OpenRequest | null
  readonly #pieces: string[] = []
  #length = 0

  constructor(request: OpenRequest | null) {
    this.#request = request
  }

  take(text: string): string {
    this.#pieces.push(text)
    this.#length += text.length
    if (this.#length > LARGEST_MESSAGE) throw new TooLarge()
    return ''
  }

  end(): string {
    const text = this.#pieces.join('')
    return soundText(text, this.#request?.id) ?? text
  }

  failed(failure: AnswerFailure, reason: string): string | null {
    return this.#request === null ? null : JSON.stringify(failedAnswer(this.#request.id, failure, reason))
  }
}

/** The answer to a request, in its sound form. */
const ANSWER = /^\{"jsonrpc":"2\.0","id":(?:-?\d+|"[^"]*"),"(?:result|error)":/

/** A reply of events. */
class EventReader implements ReplyReader {
  readonly #request: OpenRequest | null
  /** The event that has not ended: its text, and its lines. */
  #text: string[] = []
  #lines: string[] = []
  /** Pieces of the line that has not ended. */
  #line: string[] = []
  #length = 0
  /** Half of a `\r\n`. */
  #return = ''
  /** The request is answered, or there is an event after which the client comes back. */
  #isSettled = false

  constructor(request: OpenRequest | null) {
    this.#request = request
  }

  take(text: string): string {
    const whole = this.#return + text
    this.#return = whole.endsWith('\r') ? '\r' : ''
    // Pieces of lines, and what ends each.
    const pieces = (this.#return === '' ? whole : whole.slice(0, -1)).split(/(\r\n|\r|\n)/)
    return pieces.map((piece, index) => (index % 2 === 0 ? this.#addPiece(piece) : this.#endLine(piece))).join('')
  }

  end(): string {
    return this.#text.join('') + this.#return + (this.failed('closed', 'It ended its reply without an answer.') ?? '')
  }

  failed(failure: AnswerFailure, reason: string): string | null {
    const request = this.#request
    if (request === null || this.#isSettled || request.signal?.aborted === true) return null
    return `\n\nevent: message\ndata: ${JSON.stringify(failedAnswer(request.id, failure, reason))}\n\n`
  }

  #addPiece(piece: string): string {
    this.#text.push(piece)
    this.#line.push(piece)
    this.#length += piece.length
    if (this.#length > LARGEST_MESSAGE) throw new TooLarge()
    return ''
  }

  /** The event that ends with the line; empty if none does. */
  #endLine(end: string): string {
    this.#text.push(end)
    const line = this.#line.join('')
    this.#line = []
    if (line !== '') this.#lines.push(line)
    if (line !== '') return ''
    const event = this.#sound(this.#lines) ?? this.#text.join('')
    this.#text = []
    this.#lines = []
    this.#length = 0
    return event
  }

  /** An event with a sound message; null if it needs no change. */
  #sound(lines: readonly string[]): string | null {
    const data = lines.flatMap((line) => (line.startsWith('data:') ? [line.slice(5).replace(/^ /, '')] : []))
    if (lines.some((line) => line.startsWith('id:'))) this.#isSettled = true
    const sound = data.length === 0 ? null : soundText(data.join('\n'))
    if (sound === null) return null
    if (ANSWER.test(sound)) this.#isSettled = true
    return `${[...lines.filter((line) => !line.startsWith('data:')), `data: ${sound}`].join('\n')}\n\n`
  }
}
