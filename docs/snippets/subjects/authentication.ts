import type { Sessions } from 'thinharness/session'
import { createHandlers } from 'thinharness/ui'

/** Your own check: `jwtVerify` of jose, `getSession` of Auth.js, `verifyToken` of Clerk, … Null: nobody. */
export type Verify = (token: string) => Promise<{ readonly userId: string; readonly isAdmin: boolean } | null>

export function handlersFor(sessions: Sessions, verify: Verify) {
  return createHandlers({
    sessions,
    async authorize(request, { action }) {
      const [, token = ''] = /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '') ?? []
      const user = await verify(token)
      if (user === null) return new Response('Please log in.', { status: 401 })
      // Only admins answer approvals.
      if (action === 'answer' && !user.isAdmin) return new Response('Not allowed.', { status: 403 })
      return { resourceId: user.userId, by: user.userId, metadata: { isAdmin: user.isAdmin } }
    },
  })
}
