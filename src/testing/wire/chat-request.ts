import { messageContent, textContent } from '../conversation.js'
import type { HeardCall, ScriptMessage } from '../conversation.js'
import { isObject } from '#util/json.js'
import { WireRefusal } from './api.js'
import type { WireBody, WireConversation, ApiRequest } from './api.js'
import { checkedCallId, checkToolNames, isInstruction, checkedList, checkedObject, checkedText, checkedToolName } from './checks.js'
import { isSealed, reasoningSignature } from './seals.js'

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
  const calls = given === undefined ? [] : checkedList(message, 'tool_calls').map((call, at) => readCall(call, place, at))
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
