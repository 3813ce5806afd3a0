import type { Sessions } from 'thinharness/session'

/** Who decided what, the newest run first: one line for each approval and each question that was answered. */
export async function auditTrail(sessions: Sessions, limit = 100): Promise<readonly string[]> {
  const lines: string[] = []
  for await (const { threadId, item, askedAt, answered } of sessions.inbox({ answered: true, limit })) {
    if (answered === null) continue
    const { answer, by, at } = answered
    lines.push(
      [at, by ?? 'unknown', threadId, item.toolName, item.arguments, JSON.stringify(answer), askedAt].join('\t'),
    )
  }
  return lines
}
