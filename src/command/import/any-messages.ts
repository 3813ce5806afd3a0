import { isObject } from '#util/json.js'
import { listOf, textIn, timeOf, usageOf } from './record-fields.js'
import { outputOf, readItem, readAgentMessage, readAssistant, readUser, partsOf } from './message-parts.js'
import type { FileRecord, Session } from './session.js'

/** Messages of chat completions, of Anthropic and of the AI SDK, and items of the Responses API. */
export function readAnyMessage(session: Session, record: FileRecord): void {
  const { type, role } = record
  if (typeof type === 'string' && type !== 'message') {
    if (!readItem(session, record)) session.leave(type)
    return
  }
  const facts = { usage: usageOf(record['usage']), model: textIn(record['model']) }
  if (!readAgentMessage(session, record, facts) && role !== 'session_meta') session.leave(role ?? type)
}

/** The messages of a request, a response or a file of a program. */
export function messagesIn(document: FileRecord): readonly FileRecord[] {
  const { input, messages, output, choices } = document
  const before = typeof input === 'string' ? [{ role: 'user', content: input }] : listOf(input)
  const replies = listOf(choices).map((choice) => (isObject(choice) ? choice['message'] : null))
  const isReply = document['role'] === 'assistant' && document['content'] !== undefined
  const all = [...before, ...listOf(messages), ...listOf(output), ...replies, ...(isReply ? [document] : [])]
  return all.filter((each) => isObject(each))
}

/** A UI message of the AI SDK or of TanStack AI: calls and results are parts of the message of the assistant. */
export function readUiMessage(session: Session, record: FileRecord): void {
  const { role, parts } = record
  const at = timeOf(record['createdAt'])
  if (role === 'user') return readUser(session, parts ?? [], { at })
  if (role !== 'assistant') {
    if (role !== 'system') session.leave(role)
    return
  }
  const model = textIn(isObject(record['metadata']) ? record['metadata']['model'] : undefined)
  session.reply({ id: textIn(record['id']), at, model })
  const all = partsOf(parts ?? [])
  for (const part of all) {
    const type = textIn(part['type']) ?? ''
    const { toolName = type.replace(/^tool-/, '') } = part
    if (type === 'dynamic-tool' || (/^tool-/.test(type) && part['toolCallId'] !== undefined && type !== 'tool-result'))
      readToolPart(session, { ...part, toolName }, at)
    else if (!type.startsWith('data-')) readAssistant(session, [part], { at, model })
    // A page may have the output of a call in the call alone.
    const hasResult = all.some(({ toolCallId }) => toolCallId === part['id'])
    if (type === 'tool-call' && part['output'] !== undefined && !hasResult)
      session.result({ id: part['id'], ...outputOf(part['output']), at })
  }
}

/** A call of the AI SDK with its result in it. */
function readToolPart(session: Session, part: FileRecord, at: string | null): void {
  const { toolCallId: id, toolName: name, input, rawInput, output, errorText, state } = part
  session.call({ id, name, input: input ?? rawInput, hosted: part['providerExecuted'] === true })
  if (state === 'output-available') session.result({ id, ...outputOf(output), at })
  else if (state === 'output-error') session.result({ id, content: textIn(errorText) ?? '', isError: true, at })
  else if (state === 'output-denied') session.result({ id, content: 'The call was denied.', isError: true, at })
}
