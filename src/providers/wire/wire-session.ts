import type * as Asides from './compact-and-count.js'
import { withCallers } from '../http/endpoint.js'
import { isAgainstStreams, reasonOf, withRetries } from '../http/retry.js'
import type { RetriedAttempt, RetryOptions } from '../http/retry.js'
import { StreamedAnswer, WHOLE_REPLY } from '../http/wire-format.js'
import type {
  DecodedReply,
  ReplyFoldOptions,
  WireChunk,
  WireFormat,
  TransportRequest,
  Transport,
} from '../http/wire-format.js'
import type { WireSessionOptions } from './compact-and-count.js'
import { OwnParts, WireCallIds } from './call-ids.js'
import { checkEffort } from './options.js'
import { without } from './wire-fields.js'
import { areSameConstants, mayTakeLong, settingsOf } from './request-settings.js'
import type { ModelRun } from '#contracts/attempt.js'
import type { AssistantPart, TranscriptEntry } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import { mendHistory } from '#contracts/mend.js'
import type {
  CacheBust,
  Model,
  ModelCapabilities,
  ModelDelta,
  ModelSession,
  ModelTurn,
  RequestConstants,
  TurnOptions,
} from '#core/model-session.js'
import { bytesOf } from '#util/bytes.js'
import { firstDifference } from '#util/first-difference.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { isObject } from '#util/json.js'

/** A model of a wire format and a transport. */
export class SessionModel implements Model {
  readonly provider: string
  readonly id: string
  readonly capabilities: ModelCapabilities
  readonly requestBytes: number | undefined
  readonly countTokens: Model['countTokens']
  readonly compact: Model['compact']
  readonly #options: WireSessionOptions
  #isClosed = false
  /** What the next session sends its requests over, opened ahead. */
  #ahead: Transport | null = null
  #connecting: Promise<void> | null = null

  constructor(options: WireSessionOptions) {
    this.provider = options.provider
    this.id = options.model
    this.capabilities = options.capabilities
    this.requestBytes = options.capabilities.requestBytes ?? options.format.requestBytes
    this.#options = options
    // An official client is given one of its methods only.
    const { path, counter, compactor } = options.format
    const reaches = (other: string | undefined): boolean =>
      other !== undefined && (other === path || options.transport.bodies === 'bytes')
    this.countTokens = reaches(counter?.path)
      ? (...given) => loadAsides(options.format).then((of) => of.countedBy(options, ...given))
      : undefined
    this.compact = reaches(compactor?.path)
      ? (...given) => loadAsides(options.format).then((of) => of.compactedBy(options, ...given))
      : undefined
  }

  openSession(run?: ModelRun): ModelSession {
    if (this.#isClosed) throw new HarnessError('closed', `The model \`${this.id}\` is closed.`)
    const { line } = this.#options
    // A single question is not worth a connection of its own.
    const isQuestion = line?.keeps === true && run !== undefined && run.purpose !== 'main'
    const ahead = isQuestion ? null : this.#ahead
    const options = isQuestion ? { ...this.#options, line: undefined } : this.#options
    if (line === undefined || ahead === null) return new WireSession(options)
    this.#ahead = null
    return new WireSession({ ...this.#options, line: { ...line, open: () => Promise.resolve(ahead) } })
  }

  connect(): Promise<void> {
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = null))
    return this.#connecting
  }

  async #connect(): Promise<void> {
    const { line, transport, format, headers } = this.#options
    await format.load?.()
    const ahead = line === undefined ? transport : (this.#ahead ?? (await line.open()))
    await ahead.connect?.({ path: format.path, headers })
    if (line !== undefined) this.#ahead = ahead
  }

  /** A session whose requests go to a connection of the caller's, such as one that gathers them. */
  openOver(connect: (own: Transport, path: string) => Transport): ModelSession {
    const { transport, format } = this.#options
    return new WireSession({ ...this.#options, line: undefined, transport: connect(transport, format.path) })
  }

  /** What all requests with these constants begin with, by the model's own options too, and the name of its server. */
  async headOf(constants: RequestConstants): Promise<JsonObject> {
    const { format, provider, nativeTo } = this.#options
    await format.load?.()
    return { server: nativeTo?.() ?? provider, ...format.head(constants) }
  }

  check(): void {
    this.#options.check?.()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#ahead?.close()
    await this.#options.transport.close()
  }
}

/** Loaded by the first of these requests, which most runs do not send. */
async function loadAsides(format: WireFormat): Promise<typeof Asides> {
  await format.load?.()
  return import('./compact-and-count.js')
}

/** The beginning of every request of a session, encoded. */
interface Opening {
  readonly constants: RequestConstants
  readonly head: JsonObject
  readonly headers: Readonly<Record<string, string>>
  readonly messages: readonly JsonObject[]
  /** Its replies may take so long that they are streamed although nobody reads their deltas. */
  readonly isLong: boolean
}

/** The latest opening of each model: runs of one harness share it. */
const openings = new WeakMap<WireSessionOptions, Opening>()

/** The conversation as the server stores it. */
interface ChainEnd {
  readonly responseId: string
  /** Number of entries of the transcript before this response. */
  readonly entries: number
}

/** One run's session with a provider: connects a wire format to a transport. Its only state is what it has encoded. */
export class WireSession implements ModelSession {
  readonly #options: WireSessionOptions
  readonly #messages: MessageList
  readonly #own: OwnParts
  readonly #callIds = new WireCallIds()
  #opening: Opening | null = null
  /** The encoded entries, in order; compared by identity. */
  #encoded: TranscriptEntry[] = []
  #generation = 0
  #chainEnd: ChainEnd | null = null
  /** The server has refused a streamed request. */
  #refusesStreams = false
  /** The server stores the conversation; not after it has refused to. */
  #chain: boolean
  #transport: Transport | null
  /** Closes the connection of the session. Default: it has none of its own. */
  readonly close?: () => void

  constructor(options: WireSessionOptions) {
    this.#options = options
    this.#chain = options.chain || options.line?.keeps === true
    this.#transport = options.line === undefined ? options.transport : null
    if (options.line !== undefined) this.close = () => void this.#transport?.close()
    this.#own = new OwnParts(options.provider, options.nativeTo?.())
    // It is loaded while the run begins. The first turn reports a failure.
    options.format.load?.().catch(() => undefined)
    this.#messages = new MessageList(options.transport.bodies, options.format.conversationField)
  }

  async turn(
    transcript: readonly TranscriptEntry[],
    constants: RequestConstants,
    options: TurnOptions,
  ): Promise<ModelTurn> {
    const { load } = this.#options.format
    if (load !== undefined) await load()
    this.#transport ??= (await this.#options.line?.open()) ?? this.#options.transport
    const asked = { transcript, constants, options }
    const { ask, retries } = this.#prepare(asked)
    let reply: DecodedReply | null = null
    while (reply === null) {
      try {
        reply = await withRetries(ask, retries)
      } catch (error) {
        if (!this.#canChange(error, asked)) throw error
        options.onRetry?.({ attempt: 1, delayMs: 0, withdrawn: false, ...reasonOf(error) })
      }
    }
    return this.#turnOf(reply, transcript.length)
  }

  /** Encodes what is new, and how the request is sent and repeated. Not a part of `turn`: V8 compiles short functions sooner. */
  #prepare(asked: Asked): { readonly ask: Ask; readonly retries: RetryOptions } {
    const { transcript, constants, options } = asked
    const { provider, model, format, maxRetries } = this.#options
    this.#encode(transcript, constants, options)
    const carried = format.carried?.(() => this.#own.read(transcript), constants) ?? null
    const own = this.#opening?.headers ?? this.#options.headers
    const [first] = transcript
    // A compaction is in the first entry.
    const isCompacted = first?.role === 'user' && this.#own.includes(first)
    const headers = isCompacted ? withCallers(format.compactor?.headers ?? {}, own) : own
    const { attempt, retries = maxRetries, signal, onRetry } = options
    const begin = attempt && (() => attempt({ provider, model }))
    const ask = this.#ask.bind(this, { carried, headers }, asked)
    return { ask, retries: { maxRetries: retries, signal, onRetry, begin } }
  }

  #turnOf(decoded: DecodedReply, entries: number): ModelTurn {
    const { provider, model } = this.#options
    const { parts, finishReason, nativeFinishReason, refusal, usage, native, responseId, responseModel, raw } =
      this.#own.write(decoded)
    // A refused turn is not stored.
    const isStored = this.#chain && responseId !== null && finishReason !== 'refusal'
    this.#chainEnd = isStored ? { responseId, entries } : null
    const answer = {
      role: 'assistant',
      parts: this.#callIds.inParts(parts),
      provider,
      model,
      finishReason,
      usage,
    } as const
    const entry = native === undefined ? answer : { ...answer, native }
    const turn = { entry, nativeFinishReason, responseId, responseModel, raw }
    return refusal === undefined ? turn : { ...turn, refusal }
  }

  /**
   * Encodes the new entries; all entries if the view is another one, or if an earlier entry has changed, which is
   * reported. If encoding throws, the session is unchanged.
   */
  #encode(transcript: readonly TranscriptEntry[], constants: RequestConstants, options: TurnOptions): void {
    const opening = this.#opening?.constants === constants ? this.#opening : this.#openingFor(constants)
    const isFresh = this.#isFresh(opening, transcript, options)
    const added = isFresh ? transcript : transcript.slice(this.#encoded.length)
    if (isFresh || this.#chain) this.#open(opening, transcript, options)
    else this.#messages.append(this.#messagesFor(added, constants))
    if (isFresh) {
      this.#encoded = []
      this.#callIds.clear()
    }
    this.#opening = opening
    this.#generation = options.generation
    this.#callIds.note(added)
    for (const entry of added) this.#encoded.push(entry)
  }

  #openingFor(constants: RequestConstants): Opening {
    const known = openings.get(this.#options)
    if (known !== undefined && areSameConstants(known.constants, constants)) return known
    const { format, model, capabilities, headers, defaults = {} } = this.#options
    checkEffort(model, capabilities, constants.settings.reasoningEffort)
    const head = format.head(constants)
    const { reasoningEffort } = settingsOf(constants.settings, defaults)
    const opening: Opening = {
      constants,
      head,
      headers: format.headers === undefined ? headers : withCallers(headers, format.headers(constants)),
      messages: format.opening(constants),
      isLong: mayTakeLong(head, reasoningEffort),
    }
    openings.set(this.#options, opening)
    return opening
  }

  /** True if the conversation must be encoded from its beginning. Reports it if the provider's cache is lost. */
  #isFresh(opening: Opening, transcript: readonly TranscriptEntry[], options: TurnOptions): boolean {
    const before = this.#opening
    if (before === null) return true
    if (this.#generation !== options.generation) {
      this.#chainEnd = null
      return true
    }
    const areSameEntries = isPrefix(this.#encoded, transcript)
    if (before === opening && areSameEntries) return false
    const bust = this.#bustBy({ before, opening }, transcript, areSameEntries)
    if (bust === undefined) return false
    this.#chainEnd = null
    options.onCacheBust?.(bust)
    return true
  }

  /** The first difference to earlier requests that the provider would see. Another object may be an equal one. */
  #bustBy(
    { before, opening }: { readonly before: Opening; readonly opening: Opening },
    transcript: readonly TranscriptEntry[],
    areSameEntries: boolean,
  ): CacheBust | undefined {
    const inHead = firstDifference(before.head, opening.head)
    if (inHead !== undefined) return { path: `$${inHead}`, cause: 'constants_changed' }
    const again = transcript.slice(0, this.#encoded.length)
    const inMessages = firstDifference(this.#messagesOf(before, this.#encoded), this.#messagesOf(opening, again))
    if (inMessages === undefined) {
      this.#encoded = again
      return undefined
    }
    const isOfConstants = areSameEntries || firstDifference(before.messages, opening.messages) !== undefined
    const path = `$.${this.#options.format.conversationField}${inMessages}`
    return { path, cause: isOfConstants ? 'constants_changed' : 'entry_changed' }
  }

  #messagesOf({ messages, constants }: Opening, entries: readonly TranscriptEntry[]): readonly JsonObject[] {
    return [...messages, ...this.#messagesFor(mendHistory(entries).entries, constants)]
  }

  #messagesFor(entries: readonly TranscriptEntry[], constants: RequestConstants): readonly JsonObject[] {
    return this.#options.format.encode(this.#own.read(entries), constants)
  }

  /** Replaces the messages: by the entries that are new to a server that stores the conversation, otherwise by all. */
  #open(opening: Opening, transcript: readonly TranscriptEntry[], { onRepair }: TurnOptions): void {
    const unknown = this.#unknownToServer(transcript)
    if (unknown !== null) {
      const { threads } = this.#options.format
      const head = threads === undefined ? opening.head : without(opening.head, ...threads.kept)
      this.#messages.open(head, this.#messagesFor(unknown, opening.constants))
      return
    }
    this.#chainEnd = null
    const { entries, repairs } = mendHistory(transcript)
    for (const repair of repairs) onRepair?.(repair)
    this.#messages.open(opening.head, [...opening.messages, ...this.#messagesFor(entries, opening.constants)])
  }

  /**
   * True if the request is sent once more in another form: as a whole conversation if the server no longer has it, or
   * without a stream if the server refuses streams.
   */
  #canChange(error: unknown, asked: Asked): error is HarnessError {
    if (!(error instanceof HarnessError)) return false
    const isAgainstThreads = this.#chain && this.#options.format.threads !== undefined && THREADS.test(error.message)
    if (this.#chainEnd !== null && (isAgainstThreads || FORGOTTEN.test(error.message))) {
      this.#openWhole(asked)
      return true
    }
    if (isAgainstThreads) {
      this.#chain = false
      return true
    }
    if (this.#refusesStreams || !isAgainstStreams(error)) return false
    this.#refusesStreams = true
    return asked.options.onDelta !== undefined || this.#opening?.isLong === true
  }

  #openWhole({ transcript, constants, options }: Asked): void {
    this.#chainEnd = null
    this.#open(this.#opening ?? this.#openingFor(constants), transcript, options)
  }

  /** The entries after the stored reply; null if none is stored, or if another model has replied since. */
  #unknownToServer(transcript: readonly TranscriptEntry[]): readonly TranscriptEntry[] | null {
    if (this.#chainEnd === null || this.#transport?.holds?.(this.#chainEnd.responseId) === false) return null
    const [reply, ...rest] = transcript.slice(this.#chainEnd.entries)
    const { provider, model } = this.#options
    const isOurs = reply?.role === 'assistant' && reply.provider === provider && reply.model === model
    return isOurs && rest.every((entry) => entry.role !== 'assistant') ? rest : null
  }

  async #ask({ carried, headers: own }: Sending, asked: Asked, attempt: RetriedAttempt): Promise<DecodedReply> {
    const { format } = this.#options
    const { options, transcript, constants } = asked
    const transport = this.#transport ?? this.#options.transport
    const entries = transcript.length
    // The connection that knew the conversation was lost in an earlier attempt.
    if (this.#chainEnd !== null && transport.holds?.(this.#chainEnd.responseId) === false) this.#openWhole(asked)
    const isChained = this.#chain
    const headers = isChained && format.threads !== undefined ? withCallers(format.threads.headers, own) : own
    const { toolChoice, signal, idleMs, onDelta, onHeaders } = options
    const maxOutputTokens = attempt.maxOutputTokens ?? options.maxOutputTokens
    const previousResponseId = this.#chainEnd?.responseId ?? null
    const streamed = !this.#refusesStreams && (onDelta !== undefined || this.#opening?.isLong === true)
    const tail = format.tail({ streamed, toolChoice, maxOutputTokens, previousResponseId, isChained }, constants)
    const body = this.#messages.finish(carried === null ? tail : { ...carried, ...tail })
    const path = streamed ? (format.streamPath ?? format.path) : format.path
    const { submitted } = options
    const resume = options.resume?.provider === this.#options.provider ? options.resume.id : undefined
    const request: TransportRequest = { path, headers, body, signal, idleMs, onHeaders, submitted, resume }
    const callIdFor = (index: number): string => `call_${entries + 1}_${index + 1}`
    if (!streamed && onDelta === undefined)
      return wholeReply(await transport.send(request), format, { callIdFor, onDelta })
    const emit = (delta: ModelDelta): void => {
      attempt.hasEmitted = true
      onDelta?.(this.#callIds.inDelta(delta))
    }
    // Nothing is emitted if nobody reads it.
    const folding = { callIdFor, onDelta: onDelta && emit }
    if (!streamed) return wholeReply(await transport.send(request), format, folding)
    const reply = await streamedReply((isComplete) => transport.stream({ ...request, isComplete }), format, {
      ...folding,
      options,
    })
    signal.throwIfAborted()
    return reply
  }
}

interface Sending {
  readonly carried: JsonObject | null
  readonly headers: Readonly<Record<string, string>>
}

type Ask = (attempt: RetriedAttempt) => Promise<DecodedReply>

interface Asked {
  readonly transcript: readonly TranscriptEntry[]
  readonly constants: RequestConstants
  readonly options: TurnOptions
}

/** The server does not know the response that a request continues: it has expired, or was never stored. */
const FORGOTTEN = /previous[_ ]response.*not[_ ]found/is

/** An error that is about the thread of a conversation: it has expired, was continued elsewhere, or cannot be kept. */
const THREADS = /\bthread/i

/** The only place where a turn looks at the whole conversation: a plain loop, a nanosecond for each entry. */
function isPrefix(encoded: readonly TranscriptEntry[], transcript: readonly TranscriptEntry[]): boolean {
  for (let index = 0; index < encoded.length; index++) if (encoded[index] !== transcript[index]) return false
  return true
}

interface StreamOptions extends ReplyFoldOptions {
  readonly options: Pick<TurnOptions, 'signal' | 'onUsage'>
}

/** A reply that was not streamed. Its parts are emitted at once. */
function wholeReply(data: unknown, format: WireFormat, options: ReplyFoldOptions): DecodedReply {
  if (data instanceof StreamedAnswer) {
    const fold = format.fold(options)
    for (const chunk of data.chunks) fold.add(chunk)
    return fold.end()
  }
  const reply = format.decode(data, options)
  for (const part of reply.parts) emitPart(part, options)
  return reply
}

/** Adds up a stream. If the server sent a whole reply instead, its parts are emitted at once. */
async function streamedReply(
  open: (isComplete: () => boolean) => AsyncIterable<readonly WireChunk[]>,
  format: WireFormat,
  { options: { signal, onUsage }, ...options }: StreamOptions,
): Promise<DecodedReply> {
  const { callIdFor, onDelta } = options
  const arrived: ModelDelta[] = []
  const fold = format.fold({ callIdFor, onDelta: onDelta && ((delta) => void arrived.push(delta)) })
  try {
    for await (const chunks of open(() => fold.isComplete === true)) {
      const [first] = chunks
      if (first?.event === WHOLE_REPLY) return wholeReply(first.data, format, options)
      try {
        for (const chunk of chunks) fold.add(chunk)
      } finally {
        handOver(arrived, onDelta)
      }
    }
    return fold.end()
  } catch (error) {
    if (signal.aborted && fold.usage !== undefined) onUsage?.(fold.usage)
    throw error
  } finally {
    handOver(arrived, onDelta)
  }
}

/** Emits the deltas of a piece of the stream together: V8 compiles the loop that reads them and this one each by itself. */
function handOver(arrived: ModelDelta[], onDelta: ReplyFoldOptions['onDelta']): void {
  for (const delta of arrived) onDelta?.(delta)
  arrived.length = 0
}

/** A part that came at once, as one delta. */
export function emitPart(part: AssistantPart, { onDelta }: Pick<ReplyFoldOptions, 'onDelta'>): void {
  if (part.type === 'opaque' || part.type === 'hosted' || part.type === 'image') return
  const text = part.type === 'tool_call' ? part.arguments : part.text
  if (text === '') return
  if (part.type === 'tool_call') onDelta?.({ kind: 'tool_input_delta', text, callId: part.callId, toolName: part.name })
  else onDelta?.({ kind: part.type === 'text' ? 'text_delta' : 'reasoning_delta', text })
}

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
  #headBytes = NO_BYTES
  #buffer = NO_BYTES
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
    this.#headBytes = encodedHeads.get(head) ?? this.#opening(head)
    encodedHeads.set(head, this.#headBytes)
    // An earlier request may still be on its way: its bytes are not overwritten.
    this.#buffer = NO_BYTES
    this.#length = 0
    this.append(messages)
  }

  append(messages: readonly JsonObject[]): void {
    for (const message of messages) {
      if (this.#form === 'json') {
        this.#messages.push(wellFormedJson(message))
        continue
      }
      const bytes = bytesOf(wellFormedText(message))
      const needed = this.#length + 1 + bytes.length
      if (needed > this.#buffer.length) this.#grow(needed)
      if (this.#length > 0) this.#buffer[this.#length++] = COMMA
      this.#buffer.set(bytes, this.#length)
      this.#length += bytes.length
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
    const closing = bytesOf(fields.length > 1 ? `],${fields}` : ']}')
    return [headBytes, this.#buffer.subarray(0, this.#length), closing]
  }

  #opening(head: JsonObject): Uint8Array<ArrayBuffer> {
    const fields = wellFormedText(head).slice(0, -1)
    const separator = fields.length > 1 ? ',' : ''
    return bytesOf(`${fields}${separator}${JSON.stringify(this.#field)}:[`)
  }

  #grow(needed: number): void {
    const grown = new Uint8Array(Math.max(needed, this.#length * 2, SMALLEST))
    grown.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = grown
  }
}

const COMMA = 0x2c
const NO_BYTES = new Uint8Array(0)
/** The bytes of heads: lists of the same opening share them. */
const encodedHeads = new WeakMap<JsonObject, Uint8Array<ArrayBuffer>>()
/** Initial size of the buffer, in bytes. */
const SMALLEST = 1024

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
  return isObject(value) ? stableObject(value) : value
}

function wellFormedList(list: readonly JsonValue[]): readonly JsonValue[] {
  const items = list.map((item) => wellFormedJson(item))
  return items.some((item, index) => item !== list[index]) ? items : list
}

function stableObject(object: JsonObject): JsonObject {
  const members = Object.entries(object)
  const formed = members.map(([name, value]) => {
    return [name.toWellFormed(), value === undefined ? value : wellFormedJson(value)] as const
  })
  const isChanged = formed.some(([name, value], index) => name !== members[index]?.[0] || value !== members[index][1])
  return isChanged ? Object.fromEntries(formed) : object
}
