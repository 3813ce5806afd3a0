import { inside, textIn, timeOf, usageOf } from './record-fields.js'
import { partsOf, readCalls, readItem, readAssistant, readUser } from './message-parts.js'
import type { FileRecord, Session } from './session.js'

/** Codex: its `response_item` are items of the Responses API, which `event_msg` repeats. Older files have the items bare. */
export function readCodex(session: Session, record: FileRecord): void {
  const payload = inside(record, 'payload')
  const at = timeOf(record['timestamp'])
  switch (record['type']) {
    case 'session_meta':
      return session.about({ id: payload['id'], cwd: payload['cwd'], version: payload['cli_version'] })
    case 'turn_context':
      return session.about({ cwd: payload['cwd'], model: payload['model'] })
    case 'compacted':
      return session.compaction()
    case 'event_msg': {
      // The usage of the reply before it.
      const usage = usageOf(inside(payload, 'info')['last_token_usage'])
      if (payload['type'] === 'token_count' && usage !== undefined) session.reply({ at, usage, isLate: true })
      return
    }
    case 'world_state':
    case 'inter_agent_communication_metadata':
      return
    case 'response_item':
      if (payload['type'] === 'ghost_snapshot' || readItem(session, payload, at)) return
      return session.leave(payload['type'])
    default: {
      const isItem = textIn(record['type']) !== undefined && readItem(session, record, at)
      if (isItem) return
      if (typeof record['id'] === 'string' && record['type'] === undefined && record['role'] === undefined)
        return session.about({ id: record['id'] })
      if (record['record_type'] !== 'state') session.leave(record['type'] ?? record['role'])
    }
  }
}

/** GitHub Copilot CLI: events of the session. */
export function readCopilot(session: Session, record: FileRecord): void {
  const { type } = record
  const data = inside(record, 'data')
  const at = timeOf(record['timestamp'])
  switch (type) {
    case 'session.start': {
      const { sessionId: id, copilotVersion: version, selectedModel: model } = data
      return session.about({ id, version, model, cwd: data['cwd'] ?? inside(data, 'context')['cwd'] })
    }
    case 'session.model_change':
      return session.about({ model: data['newModel'] })
    case 'session.truncation':
    case 'session.compaction_complete':
      return session.compaction()
    case 'user.message':
      return readUser(session, data['content'] ?? [], { at })
    case 'assistant.message':
      readAssistant(session, data['content'] ?? [], { id: textIn(data['messageId']), at, model: textIn(data['model']) })
      if (textIn(data['reasoningText']) !== undefined) session.reasoning(data['reasoningText'])
      return readCalls(session, partsOf(data['toolRequests'] ?? []).map(requestOf))
    case 'assistant.reasoning':
    case 'assistant.thinking':
      session.reply({ at })
      return session.reasoning(data['content'])
    case 'assistant.usage':
      return session.reply({ at, usage: usageOf(data), model: textIn(data['model']), isLate: true })
    case 'tool.execution_complete': {
      const { content = inside(data, 'error')['message'] } = inside(data, 'result')
      const isError = data['success'] === false
      return session.result({ id: data['toolCallId'], content: textIn(content) ?? '', isError, at })
    }
    default:
      if (!/^(?:session|system|hook|subagent|skill|assistant|tool|abort|mcp|permission)(?:\.|$)/.test(String(type)))
        session.leave(type)
  }
}

function requestOf(request: FileRecord): FileRecord {
  return { ...request, id: request['toolCallId'] ?? request['id'] }
}

/** Grok CLI: messages of chat completions, without a wrapping, and calls of its servers. */
export function readGrok(session: Session, record: FileRecord): void {
  const { type, content } = record
  const at = timeOf(record['timestamp'])
  switch (type) {
    case 'user':
      return readUser(session, content ?? [], { at, isMeta: record['synthetic_reason'] !== undefined })
    case 'assistant':
      readAssistant(session, content ?? [], { at, model: textIn(record['model_id']), usage: usageOf(record['usage']) })
      return readCalls(session, record['tool_calls'])
    case 'backend_tool_call': {
      const call = inside(record, 'kind')
      session.reply({ at })
      return session.call({ id: call['id'], name: call['tool_type'], input: call['action'], hosted: true })
    }
    case 'tool_result':
      return session.result({
        ...{ id: record['tool_call_id'], at, isError: record['is_error'] === true },
        content: textIn(content) ?? (content === undefined ? '' : JSON.stringify(content)),
      })
    case 'compaction':
    case 'compaction_summary':
      return session.compaction()
    default:
      if (type !== 'system' && !readItem(session, record, at)) session.leave(type)
  }
}
