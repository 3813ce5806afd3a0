import { messageContent, textContent } from '../conversation.js'
import type { HeardCall, ScriptMessage } from '../conversation.js'
import { isObject } from '#util/json.js'
import { WireRefusal } from './api.js'
import type { WireBody, WireConversation, ApiRequest } from './api.js'
import { checkedCallId, checkToolNames, isInstruction, checkedList, checkedText, checkedToolName } from './checks.js'
import { isSealed } from './seals.js'

/** The conversation up to and with the reply of this id, as far as it is kept. */
type KeptReplies = (responseId: string) => readonly ScriptMessage[] | undefined

const LONGEST_CALL_ID = 64

/** Reads a request of OpenAI's Responses API, as strictly as the API does. */
export function readResponsesRequest({ headers, body }: ApiRequest, kept: KeptReplies): WireConversation {
  if (headers['authorization'] === undefined && headers['api-key'] === undefined) {
    throw new WireRefusal("You didn't provide an API key.", {}, 401)
  }
  if (typeof body['model'] !== 'string') {
    throw new WireRefusal("Missing required parameter: 'model'.", {
      param: 'model',
      code: 'missing_required_parameter',
    })
  }
  const tools = toolNames(body)
  const earlier = earlierMessages(body['previous_response_id'], kept)
  const items = inputItems(body)
  if (items.length === 0 && earlier.length === 0) {
    throw new WireRefusal("Missing required parameter: 'input'.", { param: 'input' })
  }
  checkReasoning(items, body['store'] === false ? () => undefined : kept)
  const messages = [...earlier, ...readItems(items)]
  checkAnswers(messages)
  const instructions = [body['instructions'], ...items.filter(isInstruction).map((item) => item['content'])]
  const prefix = [body['tools'], body['instructions'], ...earlier, ...items].filter((member) => member !== undefined)
  const said = instructions.filter((text) => text !== undefined && text !== null).map(textContent)
  const isContinuation = typeof body['previous_response_id'] === 'string'
  return { messages, instructions: said.join('\n\n'), tools, body, prefix, cacheable: prefix.length, isContinuation }
}

function toolNames(body: WireBody): readonly string[] {
  const tools = body['tools'] === undefined ? [] : checkedList(body, 'tools')
  const names = tools.flatMap((tool, index) =>
    tool['type'] === 'function' ? [checkedToolName(tool['name'], `tools[${index}].name`)] : [],
  )
  const choice = body['tool_choice']
  if (choice === 'required' && tools.length === 0) {
    throw new WireRefusal("Tool choice 'required' must be specified with 'tools' parameter.", { param: 'tool_choice' })
  }
  checkToolNames(names, isObject(choice) ? choice['name'] : undefined)
  return names
}

function earlierMessages(id: unknown, kept: KeptReplies): readonly ScriptMessage[] {
  if (id === undefined || id === null) return []
  const responseId = checkedText(id, 'previous_response_id')
  const messages = kept(responseId)
  if (messages !== undefined) return messages
  const details = { param: 'previous_response_id', code: 'previous_response_not_found' }
  throw new WireRefusal(`Previous response with id '${responseId}' not found.`, details)
}

function inputItems(body: WireBody): readonly WireBody[] {
  const { input } = body
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }]
  return checkedList(body, 'input')
}

/** A reasoning item comes back sealed as it was sent, and never without the item that it led to. */
function checkReasoning(items: readonly WireBody[], kept: KeptReplies): void {
  for (const [index, item] of items.entries()) {
    const { type, id, encrypted_content: blob } = item
    // Referenced items are not stored.
    if (type === 'item_reference') throw notFound(id)
    if (type !== 'reasoning') continue
    const isOpen = blob === undefined || blob === null
    if (isOpen && kept(`resp_${String(id).slice(3, -2)}`) === undefined) {
      throw notFound(id)
    }
    if (!isOpen && !isSealed(blob)) {
      throw new WireRefusal(`The encrypted content for item ${String(id)} could not be verified.`, {
        code: 'invalid_encrypted_content',
      })
    }
    if (!isReply(items[index + 1])) {
      const problem = "of type 'reasoning' was provided without its required following item"
      throw new WireRefusal(`Item '${String(id)}' ${problem}.`, { param: 'input' })
    }
  }
}

function notFound(id: unknown): WireRefusal {
  const reason = 'Items are not persisted when `store` is set to false.'
  return new WireRefusal(`Item with id '${String(id)}' not found. ${reason}`, { param: 'input' }, 404)
}

/** True if an item is part of a reply. */
function isReply(item: WireBody | undefined): boolean {
  if (item === undefined || item['type'] === 'function_call_output') return false
  return item['role'] === undefined || item['role'] === 'assistant'
}

function readItems(items: readonly WireBody[]): ScriptMessage[] {
  const messages: ScriptMessage[] = []
  let reply: { role: 'assistant'; text: string; calls: HeardCall[] } | null = null
  for (const [index, item] of items.entries()) {
    if (isInstruction(item)) continue
    if (isReply(item)) {
      if (reply === null) messages.push((reply = { role: 'assistant', text: '', calls: [] }))
      if (item['type'] === 'function_call') reply.calls.push(readCall(item, index))
      if (item['role'] === 'assistant') reply.text += textContent(item['content'])
      continue
    }
    reply = null
    messages.push(readSaid(item, index))
  }
  return messages
}

function readCall({ call_id: id, name, arguments: args }: WireBody, index: number): HeardCall {
  return {
    callId: checkedCallId(id, `input[${index}].call_id`, LONGEST_CALL_ID),
    name: checkedToolName(name, `input[${index}].name`),
    arguments: checkedText(args, `input[${index}].arguments`),
  }
}

function readSaid(item: WireBody, index: number): ScriptMessage {
  if (item['type'] === 'function_call_output') {
    const callId = checkedCallId(item['call_id'], `input[${index}].call_id`, LONGEST_CALL_ID)
    return { role: 'tool', callId, content: messageContent(item['output']) }
  }
  if (item['role'] === 'user') return { role: 'user', content: messageContent(item['content']) }
  const message = `Invalid value: '${String(item['role'])}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.`
  throw new WireRefusal(message, { param: `input[${index}].role`, code: 'invalid_value' })
}

/** Every call has an answer after it, every answer a call before it. */
function checkAnswers(messages: readonly ScriptMessage[]): void {
  const open = new Set<string>()
  for (const message of messages) {
    if (message.role === 'assistant') {
      for (const { callId } of message.calls) {
        if (open.has(callId)) throw new WireRefusal(`Duplicate function call id ${callId}.`, { param: 'input' })
        open.add(callId)
      }
    }
    if (message.role === 'tool' && !open.delete(message.callId)) {
      const problem = `No tool call found for function call output with call_id ${message.callId}.`
      throw new WireRefusal(problem, { param: 'input' })
    }
  }
  const [unanswered] = open
  if (unanswered !== undefined) {
    throw new WireRefusal(`No tool output found for function call ${unanswered}.`, { param: 'input' })
  }
}
