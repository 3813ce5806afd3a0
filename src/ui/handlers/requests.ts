import { CLIENT_TOOLS } from '../../session/tools/client-tools.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import type { ThreadItem } from '../../session/index.js'
import { RequestError } from './back-end.js'
import type { NewMessage, Taken, ThreadPort } from './back-end.js'
import type { Gate, Handler } from './gate.js'
import { answersIn, changeIn, contentIn, whenBusyIn } from './given.js'
import { badRequest, bodyOf, json, pathAfter } from './http.js'
import { SERVED_BY } from './harness-back-end.js'
import { messagesOf } from './messages.js'
import type { Action, HandlerOptions } from './options.js'

interface Asked {
  readonly gate: Gate
  readonly request: Request
  readonly thread: ThreadPort
  readonly body: JsonObject
  readonly url: URL
}

/** One route: the method, the action that it needs, and what it does. */
interface Route<Id extends 'runId' | 'threadId'> {
  readonly method: 'GET' | 'POST'
  readonly action: Action
  /** The conversation is created if there is none. */
  readonly create?: boolean
  readonly answer: (asked: Asked & { readonly [Name in Id]: string }) => Promise<Response>
}

const RUN_ROUTES: Readonly<Record<string, readonly Route<'runId'>[]>> = {
  input: [
    {
      method: 'POST',
      action: 'steer',
      async answer({ thread, runId, body, gate }) {
        await thread.steer(runId, { messageId: messageIdIn(body), content: contentIn(body, gate.options) })
        return json(202, { kept: false })
      },
    },
    {
      method: 'GET',
      action: 'read',
      answer: ({ thread, runId }) => Promise.resolve(json(200, { messages: thread.returned(runId) })),
    },
  ],
  stop: [
    {
      method: 'POST',
      action: 'stop',
      async answer({ thread, runId }) {
        await thread.stop(runId)
        return json(202, {})
      },
    },
  ],
  recover: [
    {
      method: 'POST',
      action: 'start',
      answer: async ({ thread, runId }) => taken(await thread.recover(runId)),
    },
  ],
  answers: [
    {
      method: 'POST',
      action: 'answer',
      answer: async ({ thread, runId, body }) => taken(await thread.answer(runId, answersIn(body))),
    },
  ],
}

const THREAD_ROUTES: Readonly<Record<string, readonly Route<'threadId'>[]>> = {
  messages: [
    { method: 'GET', action: 'read', answer: ({ thread, url, gate }) => messagesOf(thread, url, gate.options) },
    {
      method: 'POST',
      action: 'start',
      create: true,
      async answer({ thread, body, gate }) {
        const { metadata, mode } = body
        const message: NewMessage = {
          mode: typeof mode === 'string' ? mode : undefined,
          ...{ messageId: messageIdIn(body), content: contentIn(body, gate.options), whenBusy: whenBusyIn(body) },
          metadata: metadataIn(metadata, gate.options),
        }
        const { status, run } = await thread.send(message)
        const isLater = status === 'queued' || status === 'posted'
        const { runId = null } = isLater ? {} : ((await run) ?? {})
        return json(202, { messageId: message.messageId, status, runId })
      },
    },
  ],
  answers: [
    {
      method: 'POST',
      action: 'answer',
      async answer({ thread, body }) {
        const latest = await thread.latest()
        if (latest === null) throw badRequest('The conversation has no run.')
        return taken(await thread.answer(latest.runId, answersIn(body)))
      },
    },
  ],
  change: [
    {
      method: 'POST',
      action: 'steer',
      async answer({ thread, body }) {
        if (thread.change === undefined)
          throw new RequestError(404, 'not_found', { message: 'Only conversations of sessions can be changed.' })
        await thread.change(changeIn(body))
        return json(202, {})
      },
    },
  ],
  stop: [
    {
      method: 'POST',
      action: 'stop',
      async answer({ thread }) {
        const latest = await thread.latest()
        if (latest !== null) await thread.stop(latest.runId)
        return json(202, {})
      },
    },
  ],
}

/**
 * Requests about runs and conversations, with JSON answers: `POST …/runs/{runId}/input`, `/stop`, `/recover` and `/answers`;
 * `GET …/runs/{runId}/input`; `GET` and `POST …/threads/{threadId}/messages`, `POST …/threads/{threadId}/answers`, `/change` and
 * `/stop`; `GET …/threads`.
 */
export function requestsHandler(gate: Gate): Handler {
  return gate.handler(async (request, url) => {
    const [threadId, ofThread = ''] = pathAfter(url, 'threads') ?? []
    const [runId, ofRun = ''] = pathAfter(url, 'runs') ?? []
    if (runId !== undefined) {
      const route = routeOf(RUN_ROUTES, ofRun, request)
      if (route instanceof Response) return route
      const thread = await gate.run(request, { runId, action: route.action })
      if (thread instanceof Response) return thread
      return route.answer({ gate, request, thread, url, runId, body: await bodyIn(request, gate) })
    }
    if (threadId === undefined)
      return pathAfter(url, 'threads') === null ? new Response(null, { status: 404 }) : listed(gate, request, url)
    const route = routeOf(THREAD_ROUTES, ofThread, request)
    if (route instanceof Response) return route
    const { action, create } = route
    const thread = await gate.thread(request, { threadId, action, ...(create === true && { create }) })
    if (thread instanceof Response) return thread
    return route.answer({ gate, request, thread, url, threadId, body: await bodyIn(request, gate) })
  })
}

/** `GET …/threads?limit=50&before=<cursor>`: the conversations of the owner. */
async function listed(gate: Gate, request: Request, { searchParams }: URL): Promise<Response> {
  if (request.method !== 'GET') return new Response(null, { status: 405, headers: { allow: 'GET' } })
  const limit = Number(searchParams.get('limit') ?? 50)
  if (!Number.isInteger(limit) || limit < 1 || limit > 500)
    throw badRequest('Expected `limit` to be a whole number from 1 to 500.')
  const before = searchParams.get('before')
  const items = await gate.list(request, { limit, ...(before !== null && { before }) })
  if (items instanceof Response) return items
  const threads: ThreadItem[] = []
  for await (const item of items) threads.push(item)
  return json(200, { threads })
}

function routeOf<Id extends 'runId' | 'threadId'>(
  routes: Readonly<Record<string, readonly Route<Id>[]>>,
  name: string,
  { method }: Request,
): Route<Id> | Response {
  const found = Object.hasOwn(routes, name) ? (routes[name] ?? []) : []
  if (found.length === 0) return new Response(null, { status: 404 })
  const route = found.find((each) => each.method === method)
  const allow = found.map((each) => each.method).join(', ')
  return route ?? new Response(null, { status: 405, headers: { allow } })
}

async function bodyIn(request: Request, { maxBodyBytes }: Gate): Promise<JsonObject> {
  if (request.method === 'GET' || request.headers.get('content-length') === '0' || request.body === null) return {}
  return bodyOf(request, maxBodyBytes)
}

async function taken({ status, run }: Taken): Promise<Response> {
  const { runId = null } = (await run) ?? {}
  return json(202, { status, runId })
}

/** The metadata for the run of a message. Tools of a page count only if the handlers take them, and no page chooses the harness. */
function metadataIn(metadata: unknown, { clientTools }: HandlerOptions): object | undefined {
  if (!isObject(metadata)) return undefined
  const { [CLIENT_TOOLS]: tools, [SERVED_BY]: _harness, ...rest } = metadata
  return clientTools === true && tools !== undefined ? { ...rest, [CLIENT_TOOLS]: tools } : rest
}

function messageIdIn({ messageId }: JsonObject): string {
  if (messageId === undefined) return `msg_${globalThis.crypto.randomUUID().replaceAll('-', '')}`
  if (typeof messageId === 'string' && messageId !== '') return messageId
  throw badRequest('Expected `messageId` to be a string that is not empty.')
}
