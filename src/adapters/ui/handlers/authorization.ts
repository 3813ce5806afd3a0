import { RequestError } from './http.js'

/** Who asks, as `authorize` says. */
export interface Access {
  /** The owner of the threads: another owner's thread is like one that does not exist. */
  readonly resourceId: string
  /** The name of the person, for the log. */
  readonly by?: string | undefined
  /** The dependencies of a run that begins or continues. */
  readonly deps?: unknown
  /** Metadata of a run that begins, such as its tenant. A page cannot set it: what it sends is the member `page`. */
  readonly metadata?: object | undefined
}

/** Who asks if this machine alone is served. It also reaches runs without an owner. */
export const LOCAL: Access = { resourceId: 'local' }

/** What a request wants to do. */
export type Action = 'read' | 'start' | 'answer' | 'steer' | 'stop'

/** The conversation and the run that a request names; null if it names none. */
export interface RequestedPlace {
  readonly threadId: string | null
  readonly runId: string | null
  readonly action: Action
}

/** A `Response` is sent as it is; `Access` allows the request; anything else is 404. */
export type Authorize = (request: Request, named: RequestedPlace) => unknown

export interface AccessOptions {
  readonly authorize?: Authorize | undefined
  /** Other origins whose pages are served. */
  readonly origins?: readonly string[] | undefined
}

/**
 * Serves the programs of this machine, and pages that they serve: requests to a loopback host, of its own origin, that no proxy has
 * passed on. `Host` is what a client says: listen at 127.0.0.1 too.
 */
export function localOnly(request: Request): Access | Response {
  return isLocal(request) ? LOCAL : new Response('Forbidden', { status: 403 })
}

/** Who asks; a `Response` for a request that is refused. Throws a `RequestError` for one that a page of another site may have sent. */
export async function checkAccess(
  request: Request,
  { authorize = localOnly, origins = [] }: AccessOptions,
  named: RequestedPlace,
): Promise<Access | Response> {
  checkSender(request, origins)
  let answer: unknown
  try {
    answer = await authorize(request, named)
  } catch {
    return new Response(null, { status: 500 })
  }
  if (answer instanceof Response) return answer
  if (!isAccess(answer)) throw notFound()
  return answer
}

/** What does not exist, and what is refused like it: nobody learns which of them it is. */
export function notFound(): RequestError {
  return new RequestError(404, 'not_found', { message: 'There is no such conversation or run.' })
}

function isAccess(value: unknown): value is Access {
  if (typeof value !== 'object' || value === null || !('resourceId' in value)) return false
  return typeof value.resourceId === 'string' && value.resourceId !== ''
}

/** A browser sends the cookies of a person with the requests of any page: with forms, and with those that it does not let the page read. */
function checkSender({ headers, method, url }: Request, origins: readonly string[]): void {
  const [origin, site] = [headers.get('origin'), headers.get('sec-fetch-site')]
  const isOwn = site === 'same-origin' || site === 'none'
  const isForeign = origin === null ? site !== null && method === 'POST' : !isOfHost(origin, headers, url)
  if (!isOwn && isForeign && (origin === null || !origins.includes(origin)))
    throw new RequestError(403, 'forbidden', { message: 'Pages of this origin are not served.' })
  if (method === 'POST' && !isJson(headers))
    throw new RequestError(415, 'unsupported_media', { message: 'Expected the content type application/json.' })
}

function isOfHost(origin: string, headers: Headers, url: string): boolean {
  const host = URL.canParse(origin) ? new URL(origin).host : ''
  return host !== '' && (host === headers.get('host') || host === new URL(url).host)
}

/** What a program sends that names no type; `fetch` adds the second for a text. */
const UNNAMED: ReadonlySet<string> = new Set(['', 'text/plain;charset=utf-8'])
/** A browser sends one of these. */
const OF_BROWSERS = ['origin', 'sec-fetch-site', 'cookie', 'referer']

function isJson(headers: Headers): boolean {
  const type = (headers.get('content-type') ?? '').toLowerCase().replaceAll(' ', '')
  if (/^application\/(?:[\w.-]+\+)?json(?:;|$)/.test(type)) return true
  return type === '' || (UNNAMED.has(type) && !OF_BROWSERS.some((name) => headers.has(name)))
}

function isLocal({ headers, url }: Request): boolean {
  const isPassedOn = [...headers.keys()].some((name) => /^(?:forwarded|via|x-forwarded-.*|x-real-ip)$/.test(name))
  const host = headers.get('host') ?? new URL(url).host
  const origin = headers.get('origin')
  return !isPassedOn && isLoopback(`http://${host}`) && (origin === null || isOfHost(origin, headers, url))
}

function isLoopback(address: string): boolean {
  if (!URL.canParse(address)) return false
  const { hostname } = new URL(address)
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname)
}
