import type { WireFormat } from '../http/wire.js'
import { containerFields } from './container.js'
import { decodeMessage } from './decode.js'
import { MessageFold } from './fold.js'
import { encodeMessages } from './messages.js'
import { cappedFields, requestHead, settingFields } from './request.js'
import type { RequestOptions } from './request.js'
import { isThinking } from './thinking.js'
import { wireToolChoice } from './tools.js'

/** The Messages API as pure functions. */
export function messagesFormat(options: RequestOptions): WireFormat {
  return {
    path: '/v1/messages',
    conversationField: 'messages',
    head: (constants) => requestHead(constants, options),
    opening: () => [],
    encode: (entries, constants) => encodeMessages(entries, isThinking(options.id, settingFields(constants, options))),
    tail: ({ streamed, toolChoice, maxOutputTokens }) => ({
      ...(toolChoice !== undefined && { tool_choice: wireToolChoice(toolChoice) }),
      ...(maxOutputTokens !== undefined && cappedFields(maxOutputTokens, options)),
      ...(streamed && { stream: true }),
    }),
    carried: (transcript, constants) => containerFields(transcript, settingFields(constants, options)),
    fold: (foldOptions) => new MessageFold(foldOptions),
    decode: decodeMessage,
  }
}
