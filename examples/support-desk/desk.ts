import { SessionError } from 'thinharness/session'
import type { Sessions } from 'thinharness/session'
import { createHandlers } from 'thinharness/ui'
import { personOf } from './people.js'

type Answer = (request: Request) => Promise<Response>

const REFUSED = { signIn: 'Sign in first.', staffOnly: 'Only the staff answer approvals.' } as const

/**
 * The requests of customers, below `/api`, and of the staff, below `/staff/api`. A customer has conversations of their own; the staff
 * read and answer those of all customers, and have an inbox of everything that waits.
 */
export function deskOf(sessions: Sessions): { readonly customers: Answer; readonly staff: Answer } {
  const customers = createHandlers({
    sessions,
    authorize(request, { action }) {
      const person = personOf(request, 'customer')
      if (person === undefined) return refused(401, REFUSED.signIn)
      if (action === 'answer') return refused(403, REFUSED.staffOnly)
      return { resourceId: person.id, by: person.name }
    },
  })
  const staff = createHandlers({
    sessions,
    // Further refunds of an order can be approved with the first.
    remember: ['rule'],
    async authorize(request, { threadId, action }) {
      const person = personOf(request, 'staff')
      if (person === undefined) return refused(401, REFUSED.signIn)
      const owner = threadId === null ? null : await ownerOf(sessions, threadId)
      return owner !== null && (action === 'read' || action === 'answer') && { resourceId: owner, by: person.name }
    },
  })
  return {
    customers: (request) => (isEvents(request) ? customers.events(request) : customers.requests(request)),
    async staff(request) {
      if (new URL(request.url).pathname === '/staff/api/inbox') return inbox(sessions, request)
      return isEvents(request) ? staff.events(request) : staff.requests(request)
    },
  }
}

/** `GET …/inbox?before=<cursor>`: what waits, with who asked. `?answered=1`: what was answered, by whom and when. */
async function inbox(sessions: Sessions, request: Request): Promise<Response> {
  if (personOf(request, 'staff') === undefined) return refused(401, REFUSED.signIn)
  const { searchParams } = new URL(request.url)
  const before = searchParams.get('before') ?? undefined
  try {
    const items = []
    for await (const item of sessions.inbox({ limit: 50, before, answered: searchParams.has('answered') }))
      items.push(item)
    return Response.json({ items })
  } catch (error) {
    if (error instanceof SessionError) return refused(400, error.message)
    throw error
  }
}

async function ownerOf({ log }: Sessions, threadId: string): Promise<string | null> {
  const owner = (await log.inspect({ kind: 'thread', id: threadId }))?.digest?.['resourceId']
  return typeof owner === 'string' ? owner : null
}

function isEvents(request: Request): boolean {
  return new URL(request.url).pathname.endsWith('/events')
}

function refused(status: number, message: string): Response {
  return Response.json({ code: 'refused', message }, { status })
}
