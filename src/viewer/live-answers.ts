import { checkAccess, LOCAL, notFound } from '#adapters/ui/handlers/authorization.js'
import type { Access, Authorize } from '#adapters/ui/handlers/authorization.js'
import { readAnswers } from '#adapters/ui/handlers/request-body.js'
import { badRequest, jsonResponse, pathAfter, refusalResponse, RequestError } from '#adapters/ui/handlers/http.js'
import { createHub } from '#adapters/ui/hub/hub.js'
import type { Hub } from '#adapters/ui/hub/hub.js'
import { SSE_HEADERS, sseBody } from '#adapters/ui/http/sse-body.js'
import { encodeNative, nativeProjection, parseNativeCursor } from '#adapters/ui/native/native-projection.js'
import type { NativeCursor } from '#adapters/ui/native/native-projection.js'
import { HarnessError, messageOf } from '#contracts/errors.js'
import type { RunSummary } from '#core/log/run-summary.js'
import type { LogStore } from '#core/log/log.js'
import type { Answer } from '#core/state/answers.js'
import type { HarnessStream } from '#core/stream/stream.js'
import { isObject, type JsonObject } from '#util/json.js'
import { chosenRuns, gatherLogs } from './gather-logs.js'
import type { ViewerOptions } from './gather-logs.js'
import { pageOf } from './viewer.js'

/** Goes on with a paused run: `(runId, answers) => harness.streamResumeRun(runId, answers, { log })`. */
export type AnswerViewed = (
  runId: string,
  answers: readonly Answer[],
) => HarnessStream<unknown> | Promise<HarnessStream<unknown>>

export interface LiveViewerOptions extends ViewerOptions {
  /** The hub that reads the runs of this process: the page sees replies as they arrive. Default: stored events alone. */
  readonly hub?: Hub | undefined
  /** Lets people answer on the page. Default: they cannot. */
  readonly answers?: AnswerViewed | undefined
  /** As of `createHandlers`. Default: requests of this machine. */
  readonly authorize?: Authorize | undefined
}

/** How a browser comes back: after so long, in ms. */
const PREAMBLE = 'retry: 2000\n: thinharness\n\n'

/** Answers the requests of a live page. */
export function liveAnswers(log: LogStore, options: LiveViewerOptions): (request: Request) => Promise<Response> {
  const hub = options.hub ?? createHub({ log })
  const place = { log, hub, options }
  return async (request) => {
    try {
      return await liveAnswer(request, place)
    } catch (error) {
      return refusalResponse(refusalFor(error))
    }
  }
}

async function liveAnswer(request: Request, place: LivePlace): Promise<Response> {
  const url = new URL(request.url)
  const [runId, name] = pathAfter(url, 'runs') ?? []
  const action = name === 'answers' ? 'answer' : 'read'
  const access = await checkAccess(request, place.options, { threadId: null, runId: runId ?? null, action })
  if (access instanceof Response) return access
  const { runId: only, threadId: of } = place.options
  // A page of chosen runs is for whoever is let in; one of a whole log has the runs of who asks, or of this machine all of them.
  const owner = (only ?? of) !== undefined || access === LOCAL ? undefined : access.resourceId
  if (runId === undefined) return page(place, url, owner)
  if (!(await isOnPage(place, runId, owner))) throw notFound()
  if (name === 'events' && request.method === 'GET') return events(place, request, { url, runId, access })
  if (name === 'answers' && request.method === 'POST') return answers(place, request, { url, runId, access })
  throw notFound()
}

function refusalFor(error: unknown): RequestError {
  if (error instanceof RequestError) return error
  if (error instanceof HarnessError && error.code === 'run_not_found')
    return new RequestError(404, error.code, { message: error.message })
  return new RequestError(500, 'error', { message: 'Something went wrong.' })
}

interface LivePlace {
  readonly log: LogStore
  readonly hub: Hub
  readonly options: LiveViewerOptions
}

/** Whether a run, or one above it, is one that the page shows. */
async function isOnPage({ log, options }: LivePlace, runId: string, owner: string | undefined): Promise<boolean> {
  const chosen = await chosenRuns(log, options)
  let top: RunSummary | null = null
  for (let id: string | undefined = runId; id !== undefined; id = top?.parent?.runId) {
    if (chosen?.includes(id) === true) return true
    top = await log.inspect({ kind: 'run', id })
  }
  return chosen === null && top !== null && (owner === undefined || top.metadata['resourceId'] === owner)
}

async function page({ log, options }: LivePlace, { pathname }: URL, owner: string | undefined): Promise<Response> {
  const url = `./${pathname.replace(/.*\//, '')}/`.replace('//', '/')
  const logs = await gatherLogs(log, options, owner)
  const html = await pageOf(logs, options, { url, approvals: options.answers !== undefined })
  const headers = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' }
  return new Response(html, { headers })
}

/** The events that are stored, and those that come: whole, as the log has them. */
async function events({ log, hub, options }: LivePlace, request: Request, { url, runId }: Asked): Promise<Response> {
  const after = cursorOf(request, url, runId)
  const summary = await log.inspect({ kind: 'run', id: runId })
  if (summary === null) throw notFound()
  if (summary.status !== 'running' && !hub.isLive(runId) && after.seq >= summary.lastSeq)
    return new Response(null, { status: 204 })
  const abort = new AbortController()
  const projection = nativeProjection({ after, children: url.searchParams.get('children') === '1' }, (event) =>
    options.redact === undefined ? event : options.redact(event),
  )
  const batches = hub.batches(runId, { signal: abort.signal, children: true })
  async function* frames(): AsyncGenerator<string, void, undefined> {
    for await (const batch of batches) {
      const items = batch.flatMap((event) => projection.next(event))
      if (items.length > 0) yield items.map(encodeNative).join('')
    }
    yield projection.end().map(encodeNative).join('')
  }
  return new Response(sseBody(frames(), { preamble: PREAMBLE, request, onCancel: () => abort.abort() }), {
    headers: SSE_HEADERS,
  })
}

function cursorOf(request: Request, url: URL, runId: string): NativeCursor {
  const text = request.headers.get('last-event-id') ?? url.searchParams.get('after') ?? '0'
  try {
    return parseNativeCursor(text, runId)
  } catch (error) {
    throw badRequest(messageOf(error))
  }
}

interface Asked {
  readonly url: URL
  readonly runId: string
  readonly access: Access
}

/** Goes on with a paused run; its events come to whoever follows it. */
async function answers({ hub, options }: LivePlace, request: Request, { runId, access }: Asked): Promise<Response> {
  if (options.answers === undefined) throw notFound()
  const body: unknown = await request.json().catch(() => null)
  const signature = access.by === undefined ? {} : { by: access.by }
  const given = readAnswers((isObject(body) ? body : {}) as JsonObject, {})
  try {
    await hub.start(
      await options.answers(
        runId,
        given.map((each) => ({ ...each, ...signature })),
      ),
    )
  } catch (error) {
    throw badRequest(messageOf(error))
  }
  return jsonResponse(202, { runId })
}
