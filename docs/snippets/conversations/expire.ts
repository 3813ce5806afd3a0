import type { ExpiredItem, Sessions } from 'thinharness/session'

/** Refuses what nobody has decided within a day; questions keep waiting. */
export function expireApprovals(sessions: Sessions): Promise<readonly ExpiredItem[]> {
  return sessions.expire({
    afterMs: 24 * 3600_000,
    answer: ({ item }) =>
      item.kind === 'approval' ? { approved: false, reason: 'Nobody decided within a day.' } : null,
  })
}
