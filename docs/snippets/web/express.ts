import { getRequestListener } from '@hono/node-server'
import { fileLog, Harness } from 'thinharness'
import { createHandlers } from 'thinharness/ui'

const log = fileLog('./runs')
const harness = new Harness({ model: 'openai:gpt-5.5', log })

/** The person of each request. */
const users = new WeakMap<Request, string>()
const { aiSdk } = createHandlers({ harness, log, authorize: (request) => ({ resourceId: users.get(request) }) })

/** `req.user`, which your login (Passport, your own middleware) has set; empty if nobody is logged in: then the answer is 404. */
function userOf(incoming: object): string {
  const { user } = incoming as { readonly user?: { readonly id: string } }
  return user?.id ?? ''
}

// app.use(passport.session()), then app.use('/api', listener)
export const listener = getRequestListener((request, { incoming }) => {
  users.set(request, userOf(incoming))
  return aiSdk(request)
})
