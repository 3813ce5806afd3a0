import { Hono } from 'hono'
import type { Sessions } from 'thinharness/session'
import { createHandlers } from 'thinharness/ui'

/** An app of Hono. `userOf` looks up who has the key in the header `authorization`: null if nobody has. */
export function responsesServer(sessions: Sessions, userOf: (request: Request) => string | null): Hono {
  const { responses } = createHandlers({
    sessions,
    authorize(request) {
      const user = userOf(request)
      return user === null ? new Response('Wrong key.', { status: 401 }) : { resourceId: user }
    },
  })
  const app = new Hono()
  app.all('/v1/*', ({ req }) => responses(req.raw))
  return app
}
