import { messageContent, textContent } from '../script-request.js'
import type { HeardCall, ScriptMessage } from '../script-request.js'
import { textPieces } from '../reply.js'
import { withoutNulls, sseFrame, WireRefusal, openAiError } from './api.js'
import type { WireApi, WireReply, WireBody, WireConversation, ApiRequest } from './api.js'
import {
  checkedCallId,
  checkToolNames,
  isInstruction,
  checkedList,
  checkedObject,
  checkedText,
  checkedToolName,
} from './checks.js'
import { sealText, reasoningSignature, isSealed } from './seals.js'
import type { TokenUsage } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { isObject } from '#util/json.js'

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
  const word = finishReason === 'refusal' ? 'stop' : finishReason
  if (!isRouter) return { finish_reason: nativeFinishReason ?? word }
  return { finish_reason: word, native_finish_reason: nativeFinishReason ?? word }
}

/** A refusal ends with `stop`; its words are in a field of their own. */
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

const LONGEST_CALL_ID = 40

/** Reads a request of the chat completions API, as strictly as OpenAI does. */
export function readChatRequest({ body }: ApiRequest): WireConversation {
  if (typeof body['model'] !== 'string') throw new WireRefusal('you must provide a model parameter', { param: 'model' })
  const given = checkedList(body, 'messages')
  if (given.length === 0) {
    throw new WireRefusal("Invalid 'messages': empty array. Expected an array with minimum length 1.", {
      param: 'messages',
      code: 'empty_array',
    })
  }
  const tools = toolNames(body)
  const instructions = given.filter(isInstruction).map((message) => textContent(message['content']))
  const messages = readMessages(given)
  const prefix = [body['tools'], ...given].filter((member) => member !== undefined)
  return { messages, instructions: instructions.join('\n\n'), tools, body, prefix, cacheable: prefix.length }
}

function toolNames(body: WireBody): readonly string[] {
  const choice = body['tool_choice']
  if (body['tools'] === undefined) {
    if (choice === undefined) return []
    throw new WireRefusal("'tool_choice' is only allowed when 'tools' are specified.", { param: 'tool_choice' })
  }
  const tools = checkedList(body, 'tools')
  if (tools.length === 0) throw new WireRefusal("[] is too short - 'tools'", { param: 'tools' })
  const names = tools.flatMap((tool, index) => {
    if (tool['type'] !== 'function') return []
    const called = checkedObject(tool['function'], `tools[${index}].function`)
    return [checkedToolName(called['name'], `tools[${index}].function.name`)]
  })
  checkToolNames(names, isObject(choice) && isObject(choice['function']) ? choice['function']['name'] : undefined)
  return names
}

/** Each call has one answer, directly after its message. */
function readMessages(given: readonly WireBody[]): readonly ScriptMessage[] {
  const messages: ScriptMessage[] = []
  let open: readonly HeardCall[] = []
  for (const [index, message] of given.entries()) {
    const place = `messages[${index}]`
    if (message['role'] === 'tool') {
      const callId = checkedCallId(message['tool_call_id'], `${place}.tool_call_id`, LONGEST_CALL_ID)
      if (!open.some((call) => call.callId === callId)) throw strayAnswer(place)
      open = open.filter((call) => call.callId !== callId)
      messages.push({ role: 'tool', callId, content: messageContent(requiredContent(message, place)) })
      continue
    }
    checkAnswered(open, place)
    open = []
    if (isInstruction(message)) continue
    const read = readMessage(message, place)
    if (read.role === 'assistant') open = read.calls
    messages.push(read)
  }
  checkAnswered(open, `messages[${given.length - 1}]`)
  return messages
}

function strayAnswer(place: string): WireRefusal {
  const message = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
  return new WireRefusal(`Invalid parameter: ${message}`, { param: `${place}.role` })
}

function checkAnswered(open: readonly HeardCall[], place: string): void {
  if (open.length === 0) return
  const rule =
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
  const ids = open.map((call) => call.callId).join(', ')
  throw new WireRefusal(`${rule} The following tool_call_ids did not have response messages: ${ids}`, {
    param: `${place}.role`,
  })
}

function requiredContent({ content }: WireBody, place: string): unknown {
  if (typeof content === 'string' || Array.isArray(content)) return content
  const came = content === null ? 'null' : 'no value'
  const message = `Invalid value for 'content': expected a string, got ${came}.`
  throw new WireRefusal(message, { param: `${place}.content` })
}

function readMessage(message: WireBody, place: string): ScriptMessage {
  const { role } = message
  if (role === 'user') return { role, content: messageContent(requiredContent(message, place)) }
  if (role !== 'assistant') {
    const expected = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"
    throw new WireRefusal(`Invalid value: '${String(role)}'. Supported values are: ${expected}.`, {
      param: `${place}.role`,
      code: 'invalid_value',
    })
  }
  checkReasoning(message['reasoning_details'], place)
  const given = message['tool_calls']
  const calls =
    given === undefined ? [] : checkedList(message, 'tool_calls').map((call, at) => readCall(call, place, at))
  if (given !== undefined && calls.length === 0) {
    throw new WireRefusal(`Invalid '${place}.tool_calls': empty array.`, { param: `${place}.tool_calls` })
  }
  const content =
    calls.length > 0 || typeof message['refusal'] === 'string' ? message['content'] : requiredContent(message, place)
  return { role, text: textContent(content), calls }
}

/** Details with a signature or a seal must come back unchanged. */
function checkReasoning(details: unknown, place: string): void {
  if (!Array.isArray(details)) return
  for (const [index, each] of details.entries()) {
    const { type, text, signature, data } = checkedObject(each, `${place}.reasoning_details[${index}]`)
    const isSound =
      type === 'reasoning.encrypted'
        ? isSealed(data)
        : signature === undefined || signature === reasoningSignature(String(text))
    if (isSound) continue
    throw new WireRefusal(`${place}.reasoning_details[${index}]: Invalid \`signature\` in reasoning block`)
  }
}

function readCall(call: WireBody, place: string, at: number): HeardCall {
  const where = `${place}.tool_calls[${at}]`
  const called = checkedObject(call['function'], `${where}.function`)
  return {
    callId: checkedCallId(call['id'], `${where}.id`, LONGEST_CALL_ID),
    name: checkedToolName(called['name'], `${where}.function.name`),
    arguments: checkedText(called['arguments'], `${where}.function.arguments`),
  }
}
