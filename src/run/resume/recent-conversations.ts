import type { RunLog } from '#core/log/log.js'
import type { Conversation, HistoryRef } from '#core/state/history.js'

/** How many conversations are remembered for each log. */
const MOST = 16

/**
 * The conversations that runs of this process have continued last. Stored events do not change, so the next run of a
 * conversation does not have to read all earlier ones.
 */
const byLog = new WeakMap<RunLog, Map<string, Conversation>>()

export function recentConversation(log: RunLog, reference: HistoryRef): Conversation | undefined {
  return byLog.get(log)?.get(keyOf(reference))
}

export function rememberConversation(log: RunLog, reference: HistoryRef, conversation: Conversation): void {
  const recent = byLog.get(log) ?? new Map<string, Conversation>()
  byLog.set(log, recent)
  const key = keyOf(reference)
  recent.delete(key)
  recent.set(key, conversation)
  for (const oldest of recent.keys()) {
    if (recent.size <= MOST) break
    recent.delete(oldest)
  }
}

function keyOf({ runId, seq, entryId }: HistoryRef): string {
  return `${seq} ${entryId} ${runId}`
}
