import type { AssistantPart, TokenUsage } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import { errorFromBody, errorWithin, providerError } from '../http/provider-errors.js'
import type { DecodedReply, ReplyFold, ReplyFoldOptions, WireChunk } from '../http/wire-format.js'
import { withHostedCalls } from '../hosted/calls.js'
import { argumentsText, ReplyCallIds } from '../wire/call-ids.js'
import { objectsIn, stringIn } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import { chargedCalls, citedPages, groundingParts, withCitations } from './hosted.js'
import { assistantPart, finishReasonOf, tokenUsage } from './reply.js'
import type { FunctionCall } from './reply.js'

/** A whole reply. Throws `provider_error` for an error in place of a reply, and for anything but a reply. */
export function decodeContent(
  reply: unknown,
  { callIdFor }: Pick<ReplyFoldOptions, 'callIdFor'>,
  isThird: boolean,
): DecodedReply {
  const fold = new ContentFold({ callIdFor, onDelta: undefined }, isThird)
  fold.add({ event: null, data: reply })
  if (fold.isEmpty) {
    throw (
      errorWithin(reply) ??
      providerError("Gemini's answer is no reply: it has no `candidates`.", { retryable: true, failure: 'server' })
    )
  }
  return fold.finish()
}

/** A piece of a reply as far as it has come. */
interface Piece {
  part: WireFields
  readonly call: FunctionCall | null
}

/** Adds up a streamed reply: each event is a reply with more parts. */
export class ContentFold implements ReplyFold {
  readonly #onDelta: ReplyFoldOptions['onDelta']
  readonly #ids: ReplyCallIds
  readonly #isThird: boolean
  readonly #pieces: Piece[] = []
  #body: WireFields = {}
  #candidate: WireFields = {}

  constructor({ callIdFor, onDelta }: ReplyFoldOptions, isThird: boolean) {
    this.#onDelta = onDelta
    this.#isThird = isThird
    this.#ids = new ReplyCallIds(callIdFor)
  }

  /** The prompt was blocked, or the reply has told how it ended. */
  get isComplete(): boolean {
    return this.#ending !== ''
  }

  /** Nothing of a reply has come. */
  get isEmpty(): boolean {
    return this.#pieces.length === 0 && !this.isComplete
  }

  get usage(): TokenUsage {
    return tokenUsage(this.#body['usageMetadata'])
  }

  add({ data }: WireChunk): void {
    if (!isObject(data)) return
    if (isObject(data['error'])) throw errorFromBody(200, {}, data)
    const { candidates, usageMetadata, ...body } = data
    const { usageMetadata: earlier } = this.#body
    const usage = isObject(usageMetadata) ? { ...(isObject(earlier) && earlier), ...usageMetadata } : earlier
    this.#body = { ...this.#body, ...body, ...(usage !== undefined && { usageMetadata: usage }) }
    const [candidate] = objectsIn(candidates)
    if (candidate === undefined) return
    const { content, ...ending } = candidate
    this.#candidate = { ...this.#candidate, ...ending }
    for (const part of objectsIn(isObject(content) ? content['parts'] : [])) this.#take(part)
  }

  end(): DecodedReply {
    if (this.isComplete) return this.finish()
    const message = 'Gemini ended its stream before a finish reason: the reply is incomplete.'
    throw providerError(message, { retryable: true, failure: 'connection' })
  }

  /** The reply as it is now. */
  finish(): DecodedReply {
    const { finishMessage } = this.#candidate
    const word = this.#ending
    const hasCalls = this.#pieces.some(({ call }) => call !== null)
    const finishReason = finishReasonOf(word, stringIn(finishMessage), hasCalls)
    const parts = this.#parts()
    const content = { role: 'model', parts: this.#pieces.map(({ part }) => part) }
    return {
      parts,
      finishReason,
      nativeFinishReason: word || null,
      // Images are charged as tokens.
      usage: withHostedCalls(
        this.usage,
        parts.filter(({ type }) => type !== 'image'),
        chargedCalls(this.#candidate, this.#isThird),
      ),
      responseId: stringIn(this.#body['responseId']) || null,
      responseModel: stringIn(this.#body['modelVersion']) || null,
      raw: { ...this.#body, candidates: [{ ...this.#candidate, content }] },
    }
  }

  #parts(): readonly AssistantPart[] {
    const pages = citedPages(this.#candidate)
    const parts = this.#pieces.map(({ part, call }) => assistantPart(part, call, pages))
    const isShown = parts.some(({ type }) => type === 'hosted')
    return withCitations(isShown ? parts : [...groundingParts(this.#candidate), ...parts], this.#candidate)
  }

  /** The finish reason, or the reason why the prompt was blocked. */
  get #ending(): string {
    const { promptFeedback } = this.#body
    const blocked = isObject(promptFeedback) ? stringIn(promptFeedback['blockReason']) : ''
    return stringIn(this.#candidate['finishReason']) || blocked
  }

  #take(part: WireFields): void {
    const { text, functionCall } = part
    if (isObject(functionCall)) this.#takeCall(part, functionCall)
    else if (typeof text === 'string') this.#takeText(part, text)
    else this.#pieces.push({ part, call: null })
  }

  /** Text is joined to the text before it, unless one of them is signed: a signature belongs to its very part. */
  #takeText(part: WireFields, text: string): void {
    const { thought } = part
    const isPlain = Object.keys(part).every((name) => name === 'text' || name === 'thought')
    if (text === '' && isPlain) return
    const last = this.#pieces.at(-1)
    const isJoined = isPlain && last !== undefined && isPlainText(last.part) && last.part['thought'] === thought
    if (isJoined) last.part = { ...last.part, text: stringIn(last.part['text']) + text }
    else this.#pieces.push({ part, call: null })
    if (text !== '') this.#onDelta?.({ kind: thought === true ? 'reasoning_delta' : 'text_delta', text })
  }

  #takeCall(part: WireFields, functionCall: WireFields): void {
    const { id, args, partialArgs, willContinue } = functionCall
    if (partialArgs !== undefined || willContinue === true) {
      const message = 'Gemini streams the arguments of a call in pieces: remove `streamFunctionCallArguments`.'
      throw providerError(message, { failure: 'invalid' })
    }
    const toolName = stringIn(functionCall['name'])
    const text = argumentsText(args)
    if (this.#isRepeated(functionCall, text)) return
    const callId = this.#ids.take(id)
    this.#pieces.push({ part, call: { callId, arguments: text } })
    this.#onDelta?.({ kind: 'tool_input_delta', text, callId, toolName })
  }

  /** A call with the id, name and arguments of an earlier one is the same call. */
  #isRepeated({ id, name }: WireFields, text: string): boolean {
    return this.#pieces.some(({ part: { functionCall: known }, call }) => {
      const isSame = isObject(known) && stringIn(id) !== '' && known['id'] === id && known['name'] === name
      return isSame && call?.arguments === text
    })
  }
}

function isPlainText(part: WireFields): boolean {
  return Object.keys(part).every((name) => name === 'text' || name === 'thought')
}
