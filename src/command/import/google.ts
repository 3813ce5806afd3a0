import { isObject } from '#util/json.js'
import { inside, listOf, saidIn, textIn, timeOf, usageOf } from './record-fields.js'
import { outputOf, partsOf } from './message-parts.js'
import type { FileRecord, ReplyFacts, Session } from './session.js'

/** Gemini CLI: a document with messages, or a line for each; calls have their results in them. */
export function readGemini(session: Session, record: FileRecord): void {
  const { type } = record
  if (Array.isArray(record['parts'])) return readGeminiContent(session, record)
  session.about({ id: record['sessionId'] })
  if (record['$set'] !== undefined || (record['projectHash'] !== undefined && type === undefined)) return
  const at = timeOf(record['timestamp'])
  switch (type) {
    case 'user':
      return readParts(session, record['content'], { at }, { isPerson: true })
    case 'gemini': {
      const facts = { id: textIn(record['id']), at, model: textIn(record['model']), usage: usageOf(record['tokens']) }
      session.reply(facts)
      for (const thought of partsOf(record['thoughts'] ?? []))
        session.reasoning([thought['subject'], thought['description']].filter(textIn).join(': '))
      readParts(session, record['content'], facts, { isPerson: false })
      for (const call of partsOf(record['toolCalls'] ?? [])) readGeminiCall(session, call, at)
      return
    }
    case 'info':
    case 'error':
    case 'warning':
      return
    default:
      session.leave(type)
  }
}

function readGeminiCall(session: Session, call: FileRecord, at: string | null): void {
  session.call({ id: call['id'], name: call['name'], input: call['args'] })
  const { result, resultDisplay, status } = call
  if (result === undefined || result === null) return
  const responses = partsOf(result).map((part) => inside(part, 'functionResponse', 'response'))
  const given = responses
    .map(({ output, error }) => textIn(output) ?? textIn(error))
    .filter((text) => text !== undefined)
  const content = given.length > 0 ? given.join('\n') : outputOf(resultDisplay ?? result).content
  const isError = status === 'error' || status === 'cancelled'
  session.result({ id: call['id'], content, isError, at: timeOf(call['timestamp']) ?? at })
}

/** Parts of the Gemini API; a text that is marked as a thought is one. */
function readParts(
  session: Session,
  content: unknown,
  facts: ReplyFacts,
  { isPerson }: { readonly isPerson: boolean },
): void {
  const at = facts.at ?? null
  const said = partsOf(content ?? []).flatMap((part) => {
    const response = inside(part, 'functionResponse')
    const call = inside(part, 'functionCall')
    if (isObject(part['functionResponse'])) readResponse(session, response, at)
    else if (isObject(part['functionCall'])) session.call({ id: call['id'], name: call['name'], input: call['args'] })
    else if (part['thought'] === true) session.reasoning(part['text'])
    else if (typeof part['text'] === 'string') {
      const own = isPerson ? saidIn(part['text']) : null
      if (!isPerson) session.text(part['text'])
      return own === null ? [] : [{ type: 'text' as const, text: own }]
    } else if (part['inlineData'] === undefined && part['fileData'] === undefined) session.leave(part['type'] ?? 'part')
    return []
  })
  session.said(said, at)
}

function readResponse(session: Session, { id, response }: FileRecord, at: string | null): void {
  const { output, error } = inside(response)
  const content = textIn(output) ?? textIn(error) ?? outputOf(response ?? '').content
  session.result({ id, content, isError: error !== undefined, at })
}

/** Contents of the Gemini API: `{ role, parts }`. */
function readGeminiContent(session: Session, record: FileRecord): void {
  const isPerson = record['role'] === 'user'
  if (!isPerson) session.reply({})
  readParts(session, record['parts'], {}, { isPerson })
}

/** Qwen Code: contents of the Gemini API in records of their own. */
export function readQwen(session: Session, record: FileRecord): void {
  const { type, subtype } = record
  session.about({ id: record['sessionId'], cwd: record['cwd'], version: record['version'] })
  const parts = inside(record, 'message')['parts']
  const at = timeOf(record['timestamp'])
  if (type === 'system') {
    if (subtype === 'chat_compression') session.compaction()
    return
  }
  if (type === 'assistant') {
    const facts = { at, model: textIn(record['model']), usage: usageOf(record['usageMetadata']) }
    session.reply(facts)
    return readParts(session, parts, facts, { isPerson: false })
  }
  if (type === 'tool_result') return readParts(session, parts, { at }, { isPerson: true })
  if (type !== 'user') return session.leave(type)
  if (subtype === undefined) readParts(session, parts, { at }, { isPerson: true })
}

/** The records of a document of Gemini CLI; null if it is none. Of an older form, nobody knows the records. */
export function geminiRecords(document: FileRecord): readonly FileRecord[] | null {
  const { history, messages, projectHash } = document
  const records = listOf(messages).filter((each) => isObject(each))
  if (projectHash !== undefined || records.some(({ type }) => type === 'gemini'))
    return [{ ...document, messages: undefined }, ...records]
  return Array.isArray(history) ? history.map(() => ({ type: 'history' })) : null
}
