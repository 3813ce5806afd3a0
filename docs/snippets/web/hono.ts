import { Hono } from 'hono'
import { Harness } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { createHandlers } from 'thinharness/ui'
import { userOf } from './user.js'

const sessions = new Sessions({ harness: new Harness({ model: 'openai:gpt-5.5' }) })
const { aiSdk, events, requests } = createHandlers({
  sessions,
  authorize: (request) => ({ resourceId: userOf(request), by: userOf(request) }),
})

export const app = new Hono()
app.all('/api/chat/*', ({ req }) => aiSdk(req.raw))
app.get('/api/:kind/:id/events', ({ req }) => events(req.raw))
app.all('/api/*', ({ req }) => requests(req.raw))
