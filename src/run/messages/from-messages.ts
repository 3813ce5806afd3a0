import { isObject } from '#util/json.js'
import { shownValue } from '#util/mismatch.js'
import type { AssistantPart, ContentPart, ToolCallPart, TranscriptEntry } from '#contracts/entry.js'
import { Entries } from './message-entries.js'
import type { Content } from './message-entries.js'
import { mediumOf } from './message-media.js'
import { At } from './message-place.js'

/**
 * Transcript entries of the messages of another library, for `history`: model messages of the AI SDK, messages of chat
 * completions, input items of the Responses API, and messages of Anthropic. Reasoning is kept as text, without signatures. A
 * call that a person denied has the denial as its result. System messages are not part of a transcript: pass their text as
 * `instructions`. Throws `invalid_options`, naming the index and the field, for anything that has no entry, such as calls that a
 * provider executed, and for a tool call without exactly one result.
 *
 * @example
 * const result = await harness.run('And tomorrow?', { history: fromMessages(messages) })
 */
export function fromMessages(messages: readonly object[]): readonly TranscriptEntry[] {
  const list: unknown = messages
  if (!Array.isArray(list)) throw new At('messages').error(`expected a list, got ${shownValue(list)}`)
  const entries = new Entries()
  for (const [index, message] of list.entries()) addMessage(entries, message, new At(`messages[${index}]`))
  return entries.end()
}

const ROLES = '`user`, `assistant`, `tool`, or an item of the Responses API'

function addMessage(entries: Entries, message: unknown, at: At): void {
  if (!isObject(message)) throw at.error(`expected an object, got ${shownValue(message)}`)
  const { role, type } = message
  if (typeof type === 'string' && type !== 'message') return addItem(entries, message, at)
  if (Array.isArray(message['parts']) && message['content'] === undefined)
    throw at.error('is a UI message: convert the list with `convertToModelMessages` of the package `ai` first')
  switch (role) {
    case 'user':
      return addUser(entries, message['content'], at.in('content'))
    case 'assistant':
      return addAssistant(entries, message, at)
    case 'tool':
      return addToolMessage(entries, message, at)
    case 'system':
    case 'developer':
      throw at.error(`is a ${role} message: leave it out, and pass its text as \`instructions\``)
    default:
      throw at.in('role').error(`expected ${ROLES}, got ${shownValue(role)}`)
  }
}

/** An input item of the Responses API. */
function addItem(entries: Entries, item: JsonLike, at: At): void {
  switch (item['type']) {
    case 'function_call':
    case 'custom_tool_call': {
      const input = item['type'] === 'function_call' ? item['arguments'] : { input: item['input'] }
      return entries.reply([callOf({ id: item['call_id'], name: item['name'], input }, at)])
    }
    case 'function_call_output':
    case 'custom_tool_call_output':
      return entries.result(at, {
        callId: at.text(item, 'call_id'),
        content: contentOf(item['output'], at.in('output')),
        isError: false,
      })
    case 'reasoning': {
      const pieces = [item['summary'], item['content']].flatMap((list) =>
        Array.isArray(list) ? (list as unknown[]) : [],
      )
      const texts = pieces.flatMap((piece) =>
        isObject(piece) && typeof piece['text'] === 'string' ? [piece['text']] : [],
      )
      return entries.reply(texts.length === 0 ? [] : [{ type: 'reasoning', text: texts.join('\n\n') }])
    }
    default:
      throw at.in('type').error(`${shownValue(item['type'])} has no entry in a transcript`)
  }
}

function addUser(entries: Entries, content: unknown, at: At): void {
  if (typeof content === 'string') return entries.said([{ type: 'text', text: content }])
  const said: ContentPart[] = []
  for (const [part, place] of at.parts(content)) {
    // Anthropic has results in messages of the user.
    if (part['type'] !== 'tool_result') said.push(contentPart(part, place))
    else if (said.length > 0) throw place.error('a tool result must come before other content of its message')
    else {
      const given = part['content'] === undefined ? '' : contentOf(part['content'], place.in('content'))
      const callId = place.text(part, 'tool_use_id')
      entries.result(place, { callId, content: given, isError: part['is_error'] === true })
    }
  }
  if (said.length > 0) entries.said(said)
}

function addAssistant(entries: Entries, message: JsonLike, at: At): void {
  const { content, tool_calls: calls, refusal } = message
  const parts: AssistantPart[] = []
  const asked: [approvalId: string, callId: string][] = []
  if (typeof content === 'string') parts.push({ type: 'text', text: content })
  else if (content !== null && content !== undefined)
    for (const [part, place] of at.in('content').parts(content)) {
      if (part['type'] !== 'tool-approval-request') parts.push(...assistantParts(part, place))
      else asked.push([place.text(part, 'approvalId'), place.text(part, 'toolCallId')])
    }
  else if (calls === undefined && typeof refusal !== 'string') throw at.in('content').error(`is missing`)
  if (typeof refusal === 'string') parts.push({ type: 'text', text: refusal })
  if (calls !== undefined && calls !== null)
    for (const [call, place] of at.in('tool_calls').parts(calls)) {
      const { id, function: called = call['custom'] } = call
      if (!isObject(called)) throw place.in('function').error(`expected an object, got ${shownValue(called)}`)
      const input = called['arguments'] ?? { input: called['input'] }
      parts.push(callOf({ id, name: called['name'], input }, place))
    }
  entries.reply(parts.filter((part) => part.type !== 'text' || part.text !== ''))
  for (const [approvalId, callId] of asked) entries.asked(approvalId, callId)
}

function assistantParts(part: JsonLike, at: At): readonly AssistantPart[] {
  switch (part['type']) {
    case 'text':
    case 'output_text':
      return [{ type: 'text', text: at.text(part, 'text') }]
    case 'refusal':
      return [{ type: 'text', text: at.text(part, 'refusal') }]
    case 'reasoning':
      return [{ type: 'reasoning', text: at.text(part, 'text') }]
    case 'thinking':
      return [{ type: 'reasoning', text: at.text(part, 'thinking') }]
    case 'redacted_thinking':
      return []
    case 'tool-call':
      if (part['providerExecuted'] === true) throw at.error('was run by the provider: leave it and its result out')
      return [callOf({ id: part['toolCallId'], name: part['toolName'], input: part['input'] ?? part['args'] }, at)]
    case 'tool_use':
      return [callOf({ id: part['id'], name: part['name'], input: part['input'] }, at)]
    default:
      throw at.in('type').error(`${shownValue(part['type'])} has no place in a reply`)
  }
}

function callOf({ id, name, input }: { id: unknown; name: unknown; input: unknown }, at: At): ToolCallPart {
  if (typeof id !== 'string' || id === '')
    throw at.error(`the id of a tool call must be a string, got ${shownValue(id)}`)
  if (typeof name !== 'string') throw at.error(`the name of a tool must be a string, got ${shownValue(name)}`)
  return {
    type: 'tool_call',
    callId: id,
    name,
    arguments: typeof input === 'string' ? input || '{}' : JSON.stringify(input ?? {}),
  }
}

/** A message of a tool: with parts in the AI SDK, with an id of its own in chat completions. */
function addToolMessage(entries: Entries, message: JsonLike, at: At): void {
  if (message['tool_call_id'] !== undefined) {
    const callId = at.text(message, 'tool_call_id')
    return entries.result(at, { callId, content: contentOf(message['content'], at.in('content')), isError: false })
  }
  for (const [part, place] of at.in('content').parts(message['content'])) {
    if (part['type'] === 'tool-approval-response') {
      const approvalId = place.text(part, 'approvalId')
      if (part['approved'] === true) entries.approved(approvalId)
      else entries.denied(approvalId, denial(part['reason']))
    } else if (part['type'] === 'tool-result')
      entries.result(place, { callId: place.text(part, 'toolCallId'), ...outputOf(part, place) })
    else throw place.in('type').error(`expected \`tool-result\`, got ${shownValue(part['type'])}`)
  }
}

/** The output of a tool result of the AI SDK; before version 5 it is the value itself. */
function outputOf(part: JsonLike, at: At): { readonly content: Content; readonly isError: boolean } {
  const { output, result } = part
  if (!isObject(output)) return { content: jsonText(output ?? result ?? null), isError: part['isError'] === true }
  const { type, value, reason } = output
  switch (type) {
    case 'text':
    case 'json':
      return { content: jsonText(value ?? null), isError: false }
    case 'error-text':
    case 'error-json':
      return { content: jsonText(value ?? null), isError: true }
    case 'execution-denied':
      return { content: denial(reason), isError: true }
    case 'content':
      return { content: contentOf(value, at.in('output').in('value')), isError: false }
    default:
      throw at
        .in('output')
        .in('type')
        .error(`${shownValue(type)} is not known`)
  }
}

function denial(reason: unknown): string {
  return `The call was denied. ${typeof reason === 'string' ? reason : ''}`.trim()
}

function contentOf(content: unknown, at: At): Content {
  if (typeof content === 'string') return content
  const parts = at.parts(content).map(([part, place]) => contentPart(part, place))
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  return texts.length === parts.length ? texts.join('\n') : parts
}

function contentPart(part: JsonLike, at: At): ContentPart {
  const { type } = part
  if (type === 'text' || type === 'input_text' || type === 'output_text')
    return { type: 'text', text: at.text(part, 'text') }
  return mediumOf(part, at)
}

function jsonText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

type JsonLike = Readonly<Record<string, unknown>>
