import { inside, textIn, timeOf, usageOf } from './record-fields.js'
import { readAgentMessage } from './message-parts.js'
import type { FileRecord, Session } from './session.js'

/** pi, and OpenClaw, whose sessions are those of pi. Entries form a tree: all its branches are read, in the order of the file. */
export function readPi(session: Session, record: FileRecord): void {
  const { type } = record
  switch (type) {
    case 'session':
      return session.about({ ...record, id: record['id'], model: record['modelId'] })
    case 'model_change':
      return session.about({ provider: record['provider'], model: record['modelId'] })
    case 'compaction':
      return session.compaction()
    case 'message': {
      const message = inside(record, 'message')
      const facts = {
        ...{ id: textIn(record['id']), at: timeOf(record['timestamp']) ?? timeOf(message['timestamp']) },
        ...{ provider: textIn(message['provider']), model: textIn(message['model']), usage: usageOf(message['usage']) },
        costUsd: costOf(inside(message, 'usage', 'cost')['total']),
      }
      if (!readAgentMessage(session, message, facts) && !PI_NOTES.has(message['role'] as string))
        session.leave(message['role'])
      return
    }
    default:
      if (!PI_NOTES.has(type as string)) session.leave(type)
  }
}

/** A cost of nothing is not known: a reply that costs nothing is one without a price. */
export function costOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : undefined
}

const PI_NOTES = new Set([
  ...['thinking_level_change', 'custom', 'custom_message', 'label', 'session_info', 'bashExecution', 'branchSummary'],
  ...['compactionSummary', 'branch_summary'],
])
