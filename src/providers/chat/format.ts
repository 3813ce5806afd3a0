import type { ContentPart } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'
import type { TailOptions, WireFormat } from '../http/wire.js'
import { decodeReply } from './decode.js'
import type { ChatDialect } from './dialect.js'
import { encodeEntries } from './encode.js'
import { ChatFold } from './fold.js'
import { openingMessages, requestHead, wireToolChoice } from './head.js'
import type { RequestOptions } from './head.js'
import { uniqueIds } from './tool-calls.js'

/** Chat completions as a wire format. `inputs`: what the model takes beside text, where that is known. */
export function chatFormat(options: RequestOptions, inputs: readonly ContentPart['type'][] | undefined): WireFormat {
  const { provider, dialect } = options
  return {
    path: '/chat/completions',
    conversationField: 'messages',
    head: (constants) => requestHead(constants, options),
    opening: (constants) => openingMessages(constants, options),
    encode: (entries) => encodeEntries(entries, { provider, dialect, inputs }),
    tail: (tail) => requestTail(tail, dialect),
    fold: (fold) => new ChatFold(provider, fold),
    decode: (reply, { callIdFor }) => decodeReply(reply, provider, (given) => uniqueIds(given, callIdFor)),
  }
}

function requestTail(
  { streamed, toolChoice, maxOutputTokens }: TailOptions,
  { streamOptions, maxTokensField }: ChatDialect,
): JsonObject {
  return {
    ...(toolChoice !== undefined && { tool_choice: wireToolChoice(toolChoice) }),
    ...(maxOutputTokens !== undefined && { [maxTokensField]: maxOutputTokens }),
    ...(streamed && { stream: true, ...(streamOptions && { stream_options: { include_usage: true } }) }),
  }
}
