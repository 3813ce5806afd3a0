import { isObject } from '#util/json.js'
import { inside, textIn, timeOf, usageOf } from './record-fields.js'
import { readAgentMessage, readAssistant, readToolResult, readUser } from './message-parts.js'
import type { FileRecord, Session } from './session.js'

/** Claude Code: one record a block of a reply; subagents as records of their own, or in files of their own. */
export function readClaudeCode(session: Session, record: FileRecord): void {
  const { type } = record
  const message = inside(record, 'message')
  session.about({ id: record['sessionId'], cwd: record['cwd'], version: record['version'] })
  if (type === 'summary' || (type === 'system' && record['subtype'] === 'compact_boundary')) return session.compaction()
  if (type !== 'user' && type !== 'assistant') {
    if (!CLAUDE_NOTES.has(type as string)) session.leave(type)
    return
  }
  if (!isObject(record['message'])) return session.leave(`${type} without a message`)
  const isSide = record['isSidechain'] === true
  if (isSide) session.counts.sidechain += 1
  session.enter(isSide ? (textIn(record['agentId']) ?? 'subagent') : '')
  const at = timeOf(record['timestamp'])
  if (type === 'user') {
    const isMeta = record['isMeta'] === true || record['isCompactSummary'] === true
    return readUser(session, message['content'] ?? [], { at, isMeta })
  }
  const { id, model, content } = message
  const facts = { id: textIn(id), at, model: textIn(model), usage: usageOf(message['usage']) }
  readAssistant(session, content ?? [], facts)
}

/** Records about the program, not of the conversation. */
const CLAUDE_NOTES = new Set([
  ...['system', 'attachment', 'progress', 'queue-operation', 'file-history-snapshot', 'last-prompt', 'custom-title'],
  ...['ai-title', 'agent-name', 'agent-color', 'tag', 'mode', 'permission-mode', 'pr-link', 'hook', 'result'],
])

/** Cursor: messages without times and ids. */
export function readCursor(session: Session, record: FileRecord): void {
  if (typeof record['role'] !== 'string') {
    if (record['type'] !== 'turn_ended') session.leave(record['type'])
    return
  }
  const message = { role: record['role'], ...inside(record, 'message') }
  if (!readAgentMessage(session, message)) session.leave(record['role'])
}

/** Droid (Factory). */
export function readDroid(session: Session, record: FileRecord): void {
  const { type, cwd, version } = record
  if (type === 'session_start') return session.about({ id: record['id'], cwd, version })
  if (type === 'compaction' || type === 'compaction_state') return session.compaction()
  const at = timeOf(record['timestamp'])
  // What `droid exec` streams has its fields without a message around them.
  if (type === 'tool_call') {
    session.reply({ at })
    return session.call({ id: record['id'], name: record['toolName'] ?? record['toolId'], input: record['parameters'] })
  }
  if (type === 'tool_result')
    return readToolResult(session, { tool_use_id: record['id'], content: record['value'], ...record }, at)
  if (type !== 'message') {
    if (!DROID_NOTES.has(type as string)) session.leave(type)
    return
  }
  const message = isObject(record['message']) ? record['message'] : { ...record, content: record['text'] }
  const { id, model, usage } = inside(message)
  const facts = { id: textIn(id), at, model: textIn(model), usage: usageOf(usage) }
  if (!readAgentMessage(session, message, facts)) session.leave(message['role'])
}

const DROID_NOTES = new Set(['system', 'completion', 'todo_state', 'session_end', 'tool_state', 'checkpoint'])
