import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'

/** Member of an answer that has the result as the server sent it. */
const RECEIVED = 'thinharness/received'
/** Member of the data of an error that this client made in place of an answer. */
const FAILURE = 'thinharness/failure'

/** An error in place of an answer: the connection ended, or the answer is larger than `LARGEST_MESSAGE`. */
export type AnswerFailure = 'closed' | 'too_large'

type RequestId = string | number

/** Members in which a `null` is a value. */
const DATA = ['structuredContent', 'const', 'default', 'enum', 'examples']

/**
 * A message of a server in the form that the client library demands: members that are null are absent, and anything with the id of a
 * request, or in reply to `requestId` alone, is its answer. What a server has sent is never a reason to lose its text.
 */
export function soundMessage(message: unknown, requestId?: RequestId): unknown {
  if (!isObject(message)) return message
  const sound = withoutNulls(message)
  if (typeof sound['method'] === 'string') return { ...sound, jsonrpc: '2.0' }
  const { id = requestId, error } = sound
  if (typeof id !== 'string' && typeof id !== 'number') return sound
  if (error !== undefined) return { jsonrpc: '2.0', id, error: soundError(error) }
  const result = 'result' in message ? resultOf(sound['result'] ?? []) : null
  if (result !== null) return { jsonrpc: '2.0', id, result: { [RECEIVED]: result } }
  const given =
    'result' in message ? `The call ran, and the server answered ${JSON.stringify(message['result'])}` : NOTHING
  return { jsonrpc: '2.0', id, error: { code: INTERNAL_ERROR, message: `${given}, which is no result.` } }
}

const NOTHING = 'The server answered with nothing'

/** The text of a message in that form; null if it needs no change. */
export function soundText(text: string, requestId?: RequestId): string | null {
  try {
    const message: unknown = JSON.parse(text)
    return JSON.stringify(
      Array.isArray(message) ? message.map((each) => soundMessage(each, requestId)) : soundMessage(message, requestId),
    )
  } catch {
    return null
  }
}

/** The message that ends a request which gets no answer. */
export function failedAnswer(id: RequestId, failure: AnswerFailure, reason = ''): JSONRPCMessage {
  const message = `Connection closed. ${reason}`.trim()
  return { jsonrpc: '2.0', id, error: { code: -32000, message, data: { [FAILURE]: failure } } }
}

/** The failure that an error of the client library stands for; null if it is an answer of the server. */
export function answerFailure(error: unknown): unknown {
  const data = isObject(error) ? error['data'] : null
  return isObject(data) ? (data[FAILURE] ?? null) : null
}

/** The result of a request as the server sent it, without members that are null. */
export function receivedResult(result: unknown): unknown {
  return isObject(result) && RECEIVED in result ? result[RECEIVED] : result
}

const INTERNAL_ERROR = -32603

function soundError(error: unknown): JsonObject {
  const { code, message, data } = isObject(error) ? error : { code: null, message: error, data: undefined }
  const text = typeof message === 'string' && message !== '' ? message : JSON.stringify(error)
  return {
    code: Number.isSafeInteger(code) ? (code as number) : INTERNAL_ERROR,
    message: text,
    ...(data !== undefined && { data: data as JsonObject }),
  }
}

/** A result is an object; a text or a list is the content of one. */
function resultOf(result: unknown): JsonObject | null {
  if (isObject(result)) return result as JsonObject
  if (typeof result === 'string') return { content: [result] }
  return Array.isArray(result) ? { content: result } : null
}

function withoutNulls(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const sound: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) {
    const isData = DATA.includes(name)
    if (member === null && (!isData || name === 'structuredContent')) continue
    define(sound, name, isData ? member : soundValue(member))
  }
  return sound
}

function soundValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(soundValue)
  return isObject(value) ? withoutNulls(value) : value
}

/** A member may have any name, also `__proto__`. */
function define(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true })
}

/** Requests whose answers are judged by our own code. */
const OWN = /^(?:tools|resources|prompts)\//

/** An empty result of each of these requests. */
const EMPTY = {
  resultType: 'complete',
  ttlMs: 0,
  cacheScope: 'private',
  content: [],
  contents: [],
  messages: [],
  tools: [],
  resources: [],
  resourceTemplates: [],
  prompts: [],
}

/**
 * Has the client library pass on the answers that our own code reads, unseen: its schemas would reject a whole answer for one odd member, and the
 * call has run. Other answers (of the handshake) reach it as they were sent.
 */
export function passAnswersOn<T extends Transport>(transport: T): T {
  const own = new Set<unknown>()
  const send = transport.send.bind(transport)
  transport.send = (message, options) => {
    if ('method' in message && 'id' in message && OWN.test(message.method)) own.add(message.id)
    if ('method' in message && message.method === 'notifications/cancelled') own.delete(message.params?.['requestId'])
    return send(message, options)
  }
  const progress = new ThinProgress()
  let listener: Transport['onmessage']
  Object.defineProperty(transport, 'onmessage', {
    get: () => listener,
    set: (given: Transport['onmessage']) => {
      listener =
        given &&
        ((message, extra) => {
          const passOn = (): void => given(passedOn(message, own), extra)
          if (!progress.holds(message, passOn)) passOn()
        })
    },
  })
  return transport
}

/** After so many reports of progress of one request, the shortest time between two, in ms. */
const FREE_REPORTS = 100
const BETWEEN_REPORTS_MS = 50

/** Of reports of progress that come too fast only the latest is passed on, at the latest before the answer. */
class ThinProgress {
  readonly #requests = new Map<unknown, { count: number; passedAt: number; held: (() => void) | null }>()

  /** True if a message is passed on later, or not at all. */
  holds(message: JSONRPCMessage, passOn: () => void): boolean {
    if (!('method' in message)) return 'id' in message && this.#ends(message.id, passOn)
    if (message.method !== 'notifications/progress') return false
    const token = message.params?.['progressToken']
    const request = this.#requests.get(token)
    const now = performance.now()
    const { count = 0, passedAt = 0, held = null } = request ?? {}
    if (request === undefined || count < FREE_REPORTS || (held === null && now - passedAt >= BETWEEN_REPORTS_MS)) {
      this.#requests.set(token, { count: count + 1, passedAt: now, held: null })
      return false
    }
    if (request.held === null) setTimeout(() => this.#release(token), BETWEEN_REPORTS_MS).unref()
    request.held = passOn
    return true
  }

  #release(token: unknown): void {
    const request = this.#requests.get(token)
    request?.held?.()
    if (request !== undefined) Object.assign(request, { passedAt: performance.now(), held: null })
  }

  /** The SDK handles a report of progress after the message: the answer waits for it. */
  #ends(id: unknown, passOn: () => void): boolean {
    const token = this.#requests.has(id) ? id : Number(id)
    if (!this.#requests.has(token)) return false
    this.#release(token)
    this.#requests.delete(token)
    queueMicrotask(() => queueMicrotask(passOn))
    return true
  }
}

function passedOn<T extends JSONRPCMessage>(message: T, own: Set<unknown>): T {
  if ('method' in message || !('id' in message)) return message
  const isOwn = own.delete(message.id) || own.delete(Number(message.id))
  const received = 'result' in message ? receivedResult(message.result) : undefined
  if (!isObject(received)) return message
  const isWhole = isOwn && received['resultType'] !== 'input_required'
  return { ...message, result: isWhole ? { ...EMPTY, [RECEIVED]: received } : received }
}
