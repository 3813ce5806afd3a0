import type { ContentPart } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import type { ThreadItem } from '#session/sessions.js'
import type { Action } from './authorization.js'
import type { HandlerContext } from './handler-context.js'
import { asHandler, badRequest, jsonResponse, pathAfter } from './http.js'
import type { Handler } from './http.js'
import { withoutPaths } from '../shown-content.js'
import { messagesResponse } from './messages-response.js'
import type { ServedOptions } from './options.js'
import {
  readAnswers,
  readBody,
  readChange,
  readContent,
  readMessageId,
  pageMetadata,
  readWhenBusy,
} from './request-body.js'
import type { MessageDelivery, Thread } from './thread.js'

interface RouteRequest {
  readonly context: HandlerContext
  readonly options: ServedOptions
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
  async answer({ thread, runId, body, options }) {
    if (runId === '') throw badRequest('The conversation has no run.')
    return deliveryResponse(await thread.answer(runId, readAnswers(body, options)))
  },
}

/** `which`: the run to be stopped; null: whatever runs. */
function stopRoute(which: (request: RouteRequest) => string | null): Route {
  return {
    action: 'stop',
    async answer(request) {
      await request.thread.stop(which(request))
      return jsonResponse(202, {})
    },
  }
}

const ROUTES: Readonly<Record<string, Route>> = {
  'POST runs/input': {
    action: 'steer',
    async answer({ thread, runId, body, options }) {
      await thread.steer(runId, { messageId: readMessageId(body), content: readContent(body, options) })
      return jsonResponse(202, { kept: false })
    },
  },
  'GET runs/input': {
    action: 'read',
    async answer({ context, thread }) {
      const shown = await context.shownText()
      const shownPart = (part: ContentPart): ContentPart =>
        part.type === 'text' ? { ...part, text: shown(part.text) } : part
      const messages = thread.queued.map((each) => (typeof each === 'string' ? shown(each) : each.map(shownPart)))
      return jsonResponse(200, { messages })
    },
  },
  'POST runs/stop': stopRoute(({ runId }) => runId),
  'POST runs/recover': {
    action: 'start',
    answer: async ({ thread, runId }) => deliveryResponse(await thread.recover(runId)),
  },
  'POST runs/answers': ANSWER,
  'GET threads/messages': {
    action: 'read',
    answer: ({ thread, url, options }) => messagesResponse(thread, url, options),
  },
  'POST threads/messages': { action: 'start', create: true, answer: sendMessage },
  'POST threads/answers': ANSWER,
  'POST threads/change': {
    action: 'steer',
    async answer({ thread, body }) {
      await thread.change(readChange(body))
      return jsonResponse(202, {})
    },
  },
  'POST threads/regenerate': {
    action: 'start',
    answer: async ({ thread, body }) =>
      deliveryResponse(await thread.regenerate(body['messageId'] === undefined ? null : readMessageId(body))),
  },
  'POST threads/stop': stopRoute(() => null),
}

/**
 * Requests about runs and conversations, with JSON answers: `POST …/runs/{runId}/input`, `/stop`, `/recover` and `/answers`;
 * `GET …/runs/{runId}/input`; `GET` and `POST …/threads/{threadId}/messages`, `POST …/threads/{threadId}/answers`, `/change`,
 * `/regenerate` and `/stop`; `GET …/threads`.
 */
export function requestsHandler(context: HandlerContext): Handler {
  const { options } = context
  return asHandler(context, async (request, url) => {
    const ofThread = pathAfter(url, 'threads')
    const ofRun = pathAfter(url, 'runs') ?? []
    const isRun = ofRun.length > 0
    const [id, name = ''] = isRun ? ofRun : (ofThread ?? [])
    if (id === undefined)
      return ofThread === null ? new Response(null, { status: 404 }) : threadList(context, request, url)
    const route = findRoute(request.method, `${isRun ? 'runs' : 'threads'}/${name}`)
    if (route instanceof Response) return route
    const { action, create } = route
    // Before anything is looked up: a body may take its time.
    const body = await optionalBody(request, options)
    const thread = isRun
      ? await context.threadOfRun(request, { runId: id, action })
      : await context.thread(request, { threadId: id, action, create })
    if (thread instanceof Response) return thread
    const runId = isRun ? id : (thread.latest?.runId ?? '')
    return route.answer({ context, options, thread, runId, url, body })
  })
}

async function sendMessage({ thread, body, options }: RouteRequest): Promise<Response> {
  const messageId = readMessageId(body)
  const { mode } = body
  const { status, run } = await thread.send({
    messageId,
    content: readContent(body, options),
    whenBusy: readWhenBusy(body),
    mode: typeof mode === 'string' ? mode : undefined,
    metadata: pageMetadata(body, options),
  })
  const isLater = status === 'queued' || status === 'posted'
  const { runId = null } = isLater ? {} : ((await run) ?? {})
  return jsonResponse(202, { messageId, status, runId })
}

async function deliveryResponse({ status, run }: MessageDelivery): Promise<Response> {
  const { runId = null } = (await run) ?? {}
  return jsonResponse(202, { status, runId })
}

/** `GET …/threads?limit=50&before=<cursor>`: the conversations of the owner. */
async function threadList(context: HandlerContext, request: Request, { searchParams }: URL): Promise<Response> {
  if (request.method !== 'GET') return new Response(null, { status: 405, headers: { allow: 'GET' } })
  const limit = Number(searchParams.get('limit') ?? 50)
  if (!Number.isInteger(limit) || limit < 1 || limit > 500)
    throw badRequest('Expected `limit` to be a whole number from 1 to 500.')
  const items = await context.list(request, { limit, before: searchParams.get('before') ?? undefined })
  if (items instanceof Response) return items
  const shown = await context.shownText()
  const threads: ThreadItem[] = []
  for await (const item of items)
    threads.push({
      ...item,
      title: shown(item.title),
      firstMessage: shown(item.firstMessage),
      metadata: withoutPaths(item.metadata) as JsonObject,
    })
  return jsonResponse(200, { threads })
}

function findRoute(method: string, place: string): Route | Response {
  const name = `${method} ${place}`
  const route = Object.hasOwn(ROUTES, name) ? ROUTES[name] : undefined
  if (route !== undefined) return route
  const methods = ['GET', 'POST'].filter((each) => Object.hasOwn(ROUTES, `${each} ${place}`))
  if (methods.length === 0) return new Response(null, { status: 404 })
  return new Response(null, { status: 405, headers: { allow: methods.join(', ') } })
}

async function optionalBody(request: Request, options: ServedOptions): Promise<JsonObject> {
  if (request.method === 'GET' || request.headers.get('content-length') === '0' || request.body === null) return {}
  return readBody(request, options)
}
