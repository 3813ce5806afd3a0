import type { CacheBust, ModelSession, ModelTurn, RequestConstants, TurnOptions } from '../model/contracts.js'
import { textOf, toolCallsOf } from '../transcript/entry.js'
import type { TranscriptEntry } from '../transcript/entry.js'
import { mendHistory } from '../transcript/mend.js'
import { firstDifference } from '../util/first-difference.js'
import type { JsonObject } from '../util/json.js'
import { MessageList } from './message-list.js'
import { withRetries } from './retry.js'
import type { Attempt } from './retry.js'
import type { DecodedReply, FoldOptions, Transport, WireFormat, WireRequest } from './wire.js'

export interface WireSessionOptions {
  readonly provider: string
  readonly model: string
  readonly format: WireFormat
  readonly transport: Transport
  readonly headers: Readonly<Record<string, string>>
  readonly maxRetries: number
  /** The server keeps the conversation: send what is new and the id of the last response. */
  readonly chain: boolean
}

/** One run's session with a provider: joins a wire format to a transport. Remembers what it has encoded, nothing else. */
export class WireSession implements ModelSession {
  readonly #options: WireSessionOptions
  readonly #messages: MessageList
  #constants: RequestConstants | null = null
  #head: JsonObject = {}
  /** The entries that have been encoded, in order: known by identity. */
  #encoded: TranscriptEntry[] = []
  #lastTranscript: readonly TranscriptEntry[] | null = null
  #lastResponseId: string | null = null

  constructor(options: WireSessionOptions) {
    this.#options = options
    this.#messages = new MessageList(options.transport.bodies, options.format.conversationField)
  }

  async turn(
    transcript: readonly TranscriptEntry[],
    constants: RequestConstants,
    options: TurnOptions,
  ): Promise<ModelTurn> {
    const bust = this.#encode(transcript, constants, options)
    if (bust !== undefined) options.onCacheBust?.(bust)
    const { signal, onRetry } = options
    const ask = (attempt: Attempt) => this.#ask(transcript.length, options, attempt)
    const reply = await withRetries(ask, { maxRetries: this.#options.maxRetries, signal, onRetry })
    this.#lastResponseId = reply.responseId
    return this.#toTurn(reply)
  }

  /** Encodes what is new. An earlier entry that changed, or other constants, make everything new, which is told. */
  #encode(
    transcript: readonly TranscriptEntry[],
    constants: RequestConstants,
    { onRepair }: TurnOptions,
  ): CacheBust | undefined {
    const bust = this.#constantsChanged(constants) ?? this.#entryChanged(transcript)
    this.#lastTranscript = transcript
    if (this.#constants === null || bust !== undefined) {
      const { entries, repairs } = mendHistory(transcript)
      for (const repair of repairs) onRepair?.(repair)
      this.#constants = constants
      this.#head = this.#options.format.head(constants)
      this.#lastResponseId = null
      this.#messages.open(this.#head, this.#options.format.opening(constants))
      this.#messages.append(this.#options.format.encode(entries, constants))
      this.#encoded = [...transcript]
      return bust
    }
    const added = transcript.slice(this.#encoded.length)
    if (this.#options.chain && this.#lastResponseId !== null) this.#messages.open(this.#head, [])
    const news = this.#options.chain ? added.filter((entry) => entry.role !== 'assistant') : added
    this.#messages.append(this.#options.format.encode(news, constants))
    this.#encoded.push(...added)
    return undefined
  }

  #constantsChanged(constants: RequestConstants): CacheBust | undefined {
    if (this.#constants === null || this.#constants === constants) return undefined
    const path = firstDifference(this.#head, this.#options.format.head(constants))
    return path === undefined ? undefined : { path: `$${path}`, cause: 'constants_changed' }
  }

  #entryChanged(transcript: readonly TranscriptEntry[]): CacheBust | undefined {
    const count = this.#encoded.length
    if (count === 0) return undefined
    if (transcript === this.#lastTranscript && transcript[count - 1] === this.#encoded[count - 1]) return undefined
    const index = this.#encoded.findIndex((entry, at) => entry !== transcript[at])
    if (index < 0) return undefined
    const path = firstDifference(this.#encoded[index], transcript[index])
    return path === undefined ? undefined : { path: `$.transcript[${index}]${path}`, cause: 'entry_changed' }
  }

  async #ask(place: number, options: TurnOptions, attempt: Attempt): Promise<DecodedReply> {
    const { format, transport, headers } = this.#options
    const streamed = options.onDelta !== undefined
    const previousResponseId = this.#options.chain ? this.#lastResponseId : null
    const tail = format.tail({ streamed, toolChoice: options.toolChoice, previousResponseId })
    const request: WireRequest = {
      path: format.path,
      headers,
      body: this.#messages.finish(tail),
      signal: options.signal,
    }
    const foldOptions: FoldOptions = {
      callIdFor: (index) => `call_${place + 1}_${index + 1}`,
      onDelta: attempt.watch(options.onDelta),
    }
    if (!streamed) return format.decode((await transport.send(request)).json, foldOptions)
    const fold = format.fold(foldOptions)
    for await (const chunks of transport.stream(request)) for (const chunk of chunks) fold.add(chunk)
    options.signal.throwIfAborted()
    return fold.end()
  }

  #toTurn(reply: DecodedReply): ModelTurn {
    const { provider, model } = this.#options
    const { parts, finishReason, usage } = reply
    return {
      entry: { role: 'assistant', parts, provider, model, finishReason, usage },
      text: textOf(parts),
      toolCalls: toolCallsOf(parts).map(({ callId, name, arguments: text }) => ({ callId, name, arguments: text })),
      finishReason,
      nativeFinishReason: reply.nativeFinishReason,
      usage,
      responseId: reply.responseId,
      responseModel: reply.responseModel,
      raw: reply.raw,
    }
  }
}
