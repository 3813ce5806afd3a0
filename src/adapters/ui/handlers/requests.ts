import type { JsonObject } from '#util/json.js'
import type { ThreadItem } from '#session/sessions.js'
import type { Action } from './authorization.js'
import type { HandlerContext } from './handler-context.js'
import { asHandler, badRequest, json, pathAfter } from './http.js'
import type { Handler } from './http.js'
import { messagesOf } from './messages.js'
import type { HandlerOptions } from './options.js'
import { answersIn, bodyOf, changeIn, contentIn, messageIdIn, metadataIn, whenBusyIn } from './request-body.js'
import type { Delivery, Thread } from './thread.js'

interface RouteRequest {
  readonly options: HandlerOptions
  readonly thread: Thread
  /** The run that the path names, or the latest one of the conversation; empty if that has none. */
  readonly runId: string
  readonly body: JsonObject
  readonly url: URL
}

/** What a request needs, and what it does. */
interface Route {
  readonly action: Action
  /** The conversation is created if there is none. */
  readonly create?: boolean
  readonly answer: (request: RouteRequest) => Promise<Response>
}

const ANSWER: Route = {
  action: 'answer',
  async answer({ thread, runId, body }) {
    if (runId === '') throw badRequest('The conversation has no run.')
    return delivered(await thread.answer(runId, answersIn(body)))
  },
}

const STOP: Route = {
  action: 'stop',
  async answer({ thread, runId }) {
    await thread.stop(runId)
    return json(202, {})
  },
}

const ROUTES: Readonly<Record<string, Route>> = {
  'POST runs/input': {
    action: 'steer',
    async answer({ thread, runId, body, options }) {
      await thread.steer(runId, { messageId: messageIdIn(body), content: contentIn(body, options) })
      return json(202, { kept: false })
    },
  },
  'GET runs/input': {
    action: 'read',
    answer: ({ thread }) => Promise.resolve(json(200, { messages: thread.queued })),
  },
  'POST runs/stop': STOP,
  'POST runs/recover': {
    action: 'start',
    answer: async ({ thread, runId }) => delivered(await thread.recover(runId)),
  },
  'POST runs/answers': ANSWER,
  'GET threads/messages': {
    action: 'read',
    answer: ({ thread, url, options }) => messagesOf(thread, url, options),
  },
  'POST threads/messages': { action: 'start', create: true, answer: sent },
  'POST threads/answers': ANSWER,
  'POST threads/change': {
    action: 'steer',
    async answer({ thread, body }) {
      await thread.change(changeIn(body))
      return json(202, {})
    },
  },
  'POST threads/stop': STOP,
}

/**
 * Requests about runs and conversations, with JSON answers: `POST …/runs/{runId}/input`, `/stop`, `/recover` and `/answers`;
 * `GET …/runs/{runId}/input`; `GET` and `POST …/threads/{threadId}/messages`, `POST …/threads/{threadId}/answers`, `/change` and
 * `/stop`; `GET …/threads`.
 */
export function requestsHandler(context: HandlerContext): Handler {
  const { options } = context
  return asHandler(async (request, url) => {
    const ofThread = pathAfter(url, 'threads')
    const ofRun = pathAfter(url, 'runs') ?? []
    const isRun = ofRun.length > 0
    const [id, name = ''] = isRun ? ofRun : (ofThread ?? [])
    if (id === undefined)
      return ofThread === null ? new Response(null, { status: 404 }) : threadList(context, request, url)
    const route = routeOf(request.method, `${isRun ? 'runs' : 'threads'}/${name}`)
    if (route instanceof Response) return route
    const { action, create } = route
    const thread = isRun
      ? await context.threadOfRun(request, { runId: id, action })
      : await context.thread(request, { threadId: id, action, create })
    if (thread instanceof Response) return thread
    const runId = isRun ? id : (thread.latest?.runId ?? '')
    return route.answer({ options, thread, runId, url, body: await optionalBody(request, options) })
  })
}

async function sent({ thread, body, options }: RouteRequest): Promise<Response> {
  const messageId = messageIdIn(body)
  const { mode } = body
  const { status, run } = await thread.send({
    messageId,
    content: contentIn(body, options),
    whenBusy: whenBusyIn(body),
    mode: typeof mode === 'string' ? mode : undefined,
    metadata: metadataIn(body, options),
  })
  const isLater = status === 'queued' || status === 'posted'
  const { runId = null } = isLater ? {} : ((await run) ?? {})
  return json(202, { messageId, status, runId })
}

async function delivered({ status, run }: Delivery): Promise<Response> {
  const { runId = null } = (await run) ?? {}
  return json(202, { status, runId })
}

/** `GET …/threads?limit=50&before=<cursor>`: the conversations of the owner. */
async function threadList(context: HandlerContext, request: Request, { searchParams }: URL): Promise<Response> {
  if (request.method !== 'GET') return new Response(null, { status: 405, headers: { allow: 'GET' } })
  const limit = Number(searchParams.get('limit') ?? 50)
  if (!Number.isInteger(limit) || limit < 1 || limit > 500)
    throw badRequest('Expected `limit` to be a whole number from 1 to 500.')
  const items = await context.list(request, { limit, before: searchParams.get('before') ?? undefined })
  if (items instanceof Response) return items
  const threads: ThreadItem[] = []
  for await (const item of items) threads.push(item)
  return json(200, { threads })
}

function routeOf(method: string, place: string): Route | Response {
  const name = `${method} ${place}`
  const route = Object.hasOwn(ROUTES, name) ? ROUTES[name] : undefined
  if (route !== undefined) return route
  const methods = ['GET', 'POST'].filter((each) => Object.hasOwn(ROUTES, `${each} ${place}`))
  if (methods.length === 0) return new Response(null, { status: 404 })
  return new Response(null, { status: 405, headers: { allow: methods.join(', ') } })
}

async function optionalBody(request: Request, options: HandlerOptions): Promise<JsonObject> {
  if (request.method === 'GET' || request.headers.get('content-length') === '0' || request.body === null) return {}
  return bodyOf(request, options)
}
