import type { LogStore } from 'thinharness'
import type { Sessions } from 'thinharness/session'
import { createHandlers } from 'thinharness/ui'

const MOST = 20
const DAY_MS = 86_400_000

/** True if an owner has begun so many runs in the last 24 hours. The newest come first. */
async function hasHadEnough(log: LogStore, resourceId: string): Promise<boolean> {
  let count = 0
  for await (const { startedAt } of log.list({ kind: 'run', resourceId, parentRunId: null })) {
    if (Date.parse(startedAt) < Date.now() - DAY_MS) return false
    count += 1
    if (count === MOST) return true
  }
  return false
}

/** Handlers that take at most 20 messages a day of each user. `userOf` reads your session or token. */
export function limitedHandlers(sessions: Sessions, log: LogStore, userOf: (request: Request) => string) {
  return createHandlers({
    sessions,
    async authorize(request, { action }) {
      const user = userOf(request)
      if (action === 'start' && (await hasHadEnough(log, user)))
        return new Response(`${MOST} messages a day. Please come back tomorrow.`, { status: 429 })
      return { resourceId: user, by: user }
    },
  })
}
