import type {
  CacheBust,
  ModelCapabilities,
  ModelDelta,
  ModelSession,
  ModelTurn,
  RequestConstants,
  TurnOptions,
} from '../../contracts/model.js'
import type { TranscriptEntry } from '../../contracts/entry.js'
import { mendHistory } from '../../contracts/mend.js'
import { firstDifference } from '../../util/first-difference.js'
import type { JsonObject } from '../../util/json.js'
import { CallIds } from './call-ids.js'
import { checkEffort } from './options.js'
import { MessageList } from './message-list.js'
import { withRetries } from '../http/retry.js'
import type { Attempt } from '../http/retry.js'
import { streamedReply } from '../http/streamed-reply.js'
import type { DecodedReply, Transport, WireFormat, WireRequest } from '../http/wire.js'

export interface WireSessionOptions {
  readonly provider: string
  readonly model: string
  readonly format: WireFormat
  readonly capabilities: ModelCapabilities
  readonly transport: Transport
  readonly headers: Readonly<Record<string, string>>
  readonly maxRetries: number
  /** The server keeps the conversation: send what is new and the id of the last response. */
  readonly chain: boolean
}

/** What every request of a session begins with, encoded. */
interface Opening {
  readonly constants: RequestConstants
  readonly head: JsonObject
  readonly messages: readonly JsonObject[]
}

/** What the server knows of the conversation, when it keeps it. */
interface ChainEnd {
  readonly responseId: string
  /** Entries of the transcript that led to this response. */
  readonly entries: number
}

/** One run's session with a provider: joins a wire format to a transport. Remembers what it has encoded, nothing else. */
export class WireSession implements ModelSession {
  readonly #options: WireSessionOptions
  readonly #messages: MessageList
  readonly #callIds = new CallIds()
  #opening: Opening | null = null
  /** The entries that have been encoded, in order: known by identity. */
  #encoded: TranscriptEntry[] = []
  #generation = 0
  #chainEnd: ChainEnd | null = null

  constructor(options: WireSessionOptions) {
    this.#options = options
    this.#messages = new MessageList(options.transport.bodies, options.format.conversationField)
  }

  async turn(
    transcript: readonly TranscriptEntry[],
    constants: RequestConstants,
    options: TurnOptions,
  ): Promise<ModelTurn> {
    const { model, capabilities, maxRetries, chain } = this.#options
    checkEffort(model, capabilities, constants.settings.reasoningEffort)
    this.#encode(transcript, constants, options)
    const entries = transcript.length
    const carried = this.#options.format.carried?.(transcript, constants) ?? {}
    const ask = this.#ask.bind(this, { entries, carried }, options)
    const reply = await withRetries(ask, { maxRetries, signal: options.signal, onRetry: options.onRetry })
    const { responseId } = reply
    this.#chainEnd = chain && responseId !== null ? { responseId, entries } : null
    return this.#toTurn(reply)
  }

  /** Encodes new entries; all of them for another view, and if an earlier entry changed, which is reported. All or nothing. */
  #encode(transcript: readonly TranscriptEntry[], constants: RequestConstants, options: TurnOptions): void {
    const opening = this.#openingFor(constants)
    const isNewView = this.#generation !== options.generation
    const bust = isNewView ? undefined : this.#bustBy(opening, transcript)
    if (isNewView) this.#chainEnd = null
    if (bust !== undefined) {
      this.#chainEnd = null
      options.onCacheBust?.(bust)
    }
    const isFresh = this.#opening === null || isNewView || bust !== undefined
    const added = transcript.slice(isFresh ? 0 : this.#encoded.length)
    if (isFresh || this.#options.chain) this.#open(opening, transcript, options)
    else this.#messages.append(this.#options.format.encode(added, constants))
    if (isFresh) {
      this.#encoded = []
      this.#callIds.clear()
    }
    this.#opening = opening
    this.#generation = options.generation
    this.#callIds.note(added)
    for (const entry of added) this.#encoded.push(entry)
  }

  /** Begins the messages anew: with what the server does not have, where it keeps the conversation, else with everything. */
  #open(opening: Opening, transcript: readonly TranscriptEntry[], { onRepair }: TurnOptions): void {
    const { format } = this.#options
    const unknown = this.#unknownToServer(transcript)
    if (unknown !== null) {
      this.#messages.open(opening.head, format.encode(unknown, opening.constants))
      return
    }
    this.#chainEnd = null
    const { entries, repairs } = mendHistory(transcript)
    for (const repair of repairs) onRepair?.(repair)
    this.#messages.open(opening.head, [...opening.messages, ...format.encode(entries, opening.constants)])
  }

  /**
   * What came after the reply that the server goes on from; null where it has nothing to go on from, or where another
   * model has answered since.
   */
  #unknownToServer(transcript: readonly TranscriptEntry[]): readonly TranscriptEntry[] | null {
    if (this.#chainEnd === null) return null
    const [reply, ...rest] = transcript.slice(this.#chainEnd.entries)
    const { provider, model } = this.#options
    const isOurs = reply?.role === 'assistant' && reply.provider === provider && reply.model === model
    return isOurs && rest.every((entry) => entry.role !== 'assistant') ? rest : null
  }

  #openingFor(constants: RequestConstants): Opening {
    if (this.#opening?.constants === constants) return this.#opening
    const { format } = this.#options
    return { constants, head: format.head(constants), messages: format.opening(constants) }
  }

  /** The first difference that the provider would see in what it was sent before. Another object need not be one. */
  #bustBy(opening: Opening, transcript: readonly TranscriptEntry[]): CacheBust | undefined {
    const { conversationField } = this.#options.format
    const before = this.#opening
    const areSameEntries = isPrefix(this.#encoded, transcript)
    if (before === null || (before === opening && areSameEntries)) return undefined
    const inHead = firstDifference(before.head, opening.head)
    if (inHead !== undefined) return { path: `$${inHead}`, cause: 'constants_changed' }
    const again = transcript.slice(0, this.#encoded.length)
    const inMessages = firstDifference(this.#messagesOf(before, this.#encoded), this.#messagesOf(opening, again))
    if (inMessages === undefined) {
      this.#encoded = again
      return undefined
    }
    const isOfConstants = areSameEntries || firstDifference(before.messages, opening.messages) !== undefined
    return { path: `$.${conversationField}${inMessages}`, cause: isOfConstants ? 'constants_changed' : 'entry_changed' }
  }

  #messagesOf({ messages, constants }: Opening, entries: readonly TranscriptEntry[]): readonly JsonObject[] {
    return [...messages, ...this.#options.format.encode(mendHistory(entries).entries, constants)]
  }

  async #ask(
    { entries, carried }: { readonly entries: number; readonly carried: JsonObject },
    options: TurnOptions,
    attempt: Attempt,
  ): Promise<DecodedReply> {
    const { format, transport, headers } = this.#options
    const { toolChoice, maxOutputTokens, signal, onDelta } = options
    const previousResponseId = this.#chainEnd?.responseId ?? null
    const tail = format.tail({ streamed: onDelta !== undefined, toolChoice, maxOutputTokens, previousResponseId })
    const body = this.#messages.finish({ ...carried, ...tail })
    const request: WireRequest = { path: format.path, headers, body, signal }
    const callIdFor = (index: number): string => `call_${entries + 1}_${index + 1}`
    if (onDelta === undefined) return format.decode((await transport.send(request)).json, { callIdFor, onDelta })
    const ids = this.#callIds.forReply()
    const tell = (delta: ModelDelta): void => {
      attempt.toldDeltas = true
      onDelta(ids.inDelta(delta))
    }
    const reply = await streamedReply(transport.stream(request), format, { callIdFor, onDelta: tell })
    signal.throwIfAborted()
    return reply
  }

  #toTurn(reply: DecodedReply): ModelTurn {
    const { provider, model } = this.#options
    const { finishReason, nativeFinishReason, refusal, usage, native, responseId, responseModel, raw } = reply
    const parts = this.#callIds.forReply().inParts(reply.parts)
    return {
      entry: {
        ...{ role: 'assistant', parts, provider, model, finishReason, usage },
        ...(native !== undefined && { native }),
      },
      nativeFinishReason,
      ...(refusal !== undefined && { refusal }),
      responseId,
      responseModel,
      raw,
    }
  }
}

/** The one place where a turn looks at the whole conversation: a plain loop, a nanosecond for each entry. */
function isPrefix(encoded: readonly TranscriptEntry[], transcript: readonly TranscriptEntry[]): boolean {
  for (let index = 0; index < encoded.length; index++) if (encoded[index] !== transcript[index]) return false
  return true
}
