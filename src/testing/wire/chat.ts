import type { JsonObject } from '#util/json.js'
import type { TokenUsage } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import { textPieces } from '../reply.js'
import { withoutNulls, sseFrame } from './api.js'
import type { WireApi, WireReply } from './api.js'
import { readChatRequest } from './chat-request.js'
import { openAiError } from './openai-errors.js'
import { sealText, reasoningSignature } from './seals.js'

/** The chat completions API: OpenAI's, with the `reasoning_content` that compatible servers send; or OpenRouter's. */
export function chatApi(dialect: 'openai' | 'openrouter'): WireApi {
  const isRouter = dialect === 'openrouter'
  return {
    read: readChatRequest,
    callId: (ordinal) => `call_${String(ordinal).padStart(24, '0')}`,
    chargesCacheWrites: false,
    whole: (reply) => {
      const choice = { index: 0, message: chatMessage(reply, isRouter), logprobs: null, ...chatEnd(reply, isRouter) }
      return {
        ...replyShell(reply, isRouter),
        object: 'chat.completion',
        choices: [choice],
        ...usageField(reply.usage, isRouter),
      }
    },
    stream: (reply) => chatStream(reply, isRouter),
    error: (status, message, details) =>
      isRouter ? { error: { code: status, message } } : openAiError(status, message, details),
    errorEvent: (message) => {
      if (!isRouter) return sseFrame({ error: { message, type: 'server_error', param: null, code: null } })
      const choices = [{ index: 0, delta: { content: '' }, finish_reason: 'error' }]
      return sseFrame({ object: 'chat.completion.chunk', error: { code: 'server_error', message }, choices })
    },
  }
}

type Part = WireReply['parts'][number]

function replyShell({ id, created, model }: WireReply, isRouter: boolean): JsonObject {
  if (isRouter) return { id: `gen-${created}-${id}`, created, model, provider: 'Scripted' }
  return { id: `chatcmpl-${id}`, created, model, system_fingerprint: null }
}

function chatMessage({ parts }: WireReply, isRouter: boolean): JsonObject {
  const text = joinParts(parts, 'text')
  const calls = parts.filter((part) => part.type === 'call')
  return {
    role: 'assistant',
    content: text === '' && (calls.length > 0 || joinParts(parts, 'refusal') !== '') ? null : text,
    refusal: joinParts(parts, 'refusal') || null,
    ...reasoningField(parts, isRouter),
    ...(calls.length > 0 && { tool_calls: calls.map((call) => ({ ...toolCall(call, call.arguments) })) }),
    ...mergeBlocks(parts),
  }
}

function joinParts(parts: readonly Part[], type: 'text' | 'reasoning' | 'refusal'): string {
  return parts.map((part) => (part.type === type ? part.text : '')).join('')
}

function toolCall({ callId, name }: Part & { type: 'call' }, text: string): JsonObject {
  return { ...withoutNulls({ id: callId }), type: 'function', function: { name, arguments: text } }
}

/** Fields of the message that no other part stands for. */
function mergeBlocks(parts: readonly Part[]): JsonObject {
  return Object.assign({}, ...parts.map((part) => (part.type === 'block' ? part.data : {}))) as JsonObject
}

function reasoningField(parts: readonly Part[], isRouter: boolean): JsonObject {
  const thoughts = parts.filter((part) => part.type === 'reasoning')
  if (thoughts.length === 0) return {}
  const text = joinParts(parts, 'reasoning')
  if (!isRouter) return { reasoning_content: text }
  return { reasoning: text, reasoning_details: thoughts.map((part, index) => reasoningDetail(part.text, index)) }
}

function reasoningDetail(text: string, index: number): JsonObject {
  const format = 'anthropic-claude-v1'
  if (text === '') return { type: 'reasoning.encrypted', data: sealText(''), format, index }
  return { type: 'reasoning.text', text, signature: reasoningSignature(text), format, index }
}

function chatEnd({ finishReason, nativeFinishReason }: WireReply, isRouter: boolean): JsonObject {
  const word = FINISH_REASONS[finishReason]
  if (!isRouter) return { finish_reason: nativeFinishReason ?? word }
  return { finish_reason: word, native_finish_reason: nativeFinishReason ?? word }
}

/** A refusal ends with `stop`; its words are in a field of their own. */
const FINISH_REASONS: Readonly<Record<WireReply['finishReason'], string>> = {
  stop: 'stop',
  tool_calls: 'tool_calls',
  length: 'length',
  refusal: 'stop',
  content_filter: 'content_filter',
  pause: 'pause',
  cancelled: 'cancelled',
  error: 'error',
  other: 'other',
}

function chatStream(reply: WireReply, isRouter: boolean): string[] {
  const base = { ...replyShell(reply, isRouter), object: 'chat.completion.chunk' }
  const options = reply.body['stream_options']
  const hasUsage = isRouter || (isObject(options) && options['include_usage'] === true)
  const blank = isRouter ? {} : { logprobs: null }
  const unpriced = hasUsage && !isRouter ? { usage: null } : {}
  const chatChunk = (delta: JsonObject, end: JsonObject = { finish_reason: null }) =>
    sseFrame({ ...base, choices: [{ index: 0, delta, ...blank, ...end }], ...unpriced })
  const last = hasUsage ? [sseFrame({ ...base, choices: [], ...usageField(reply.usage, isRouter) })] : []
  return [
    chatChunk({ role: 'assistant', content: '', ...(!isRouter && { refusal: null }) }),
    ...chatDeltas(reply.parts, isRouter).map((delta) => chatChunk(delta)),
    chatChunk({}, chatEnd(reply, isRouter)),
    ...last,
    sseFrame('[DONE]'),
  ]
}

function chatDeltas(parts: readonly Part[], isRouter: boolean): JsonObject[] {
  const calls = parts.filter((part) => part.type === 'call')
  return parts.flatMap((part): JsonObject[] => {
    switch (part.type) {
      case 'text':
        return textPieces(part.text).map((content) => ({ content }))
      case 'refusal':
        return textPieces(part.text).map((refusal) => ({ refusal }))
      case 'reasoning':
        return reasoningDeltas(part.text, isRouter)
      case 'block':
        return [part.data]
      case 'call': {
        const index = calls.indexOf(part)
        const opening = { tool_calls: [{ index, ...toolCall(part, '') }] }
        const pieces = textPieces(part.arguments)
        return [opening, ...pieces.map((text) => ({ tool_calls: [{ index, function: { arguments: text } }] }))]
      }
    }
  })
}

function reasoningDeltas(text: string, isRouter: boolean): JsonObject[] {
  const pieces = textPieces(text)
  if (!isRouter) return pieces.map((piece) => ({ reasoning_content: piece }))
  const whole = reasoningDetail(text, 0)
  if (text === '') return [{ reasoning_details: [whole] }]
  const { type, format, index, signature } = whole
  const detail = { type, format, index }
  const deltas = pieces.map((piece) => ({ reasoning: piece, reasoning_details: [{ ...detail, text: piece }] }))
  return [...deltas, { reasoning_details: [{ ...detail, signature }] }]
}

function usageField(usage: TokenUsage | null, isRouter: boolean): JsonObject {
  if (usage === null) return {}
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage
  const total = inputTokens === null || outputTokens === null ? null : inputTokens + outputTokens
  const written = isRouter ? { cache_write_tokens: cacheWriteTokens } : {}
  return {
    usage: withoutNulls({
      prompt_tokens: inputTokens,
      completion_tokens: outputTokens,
      total_tokens: total,
      prompt_tokens_details: withoutNulls({ cached_tokens: cacheReadTokens, ...written }),
      completion_tokens_details: withoutNulls({ reasoning_tokens: reasoningTokens }),
    }),
  }
}
