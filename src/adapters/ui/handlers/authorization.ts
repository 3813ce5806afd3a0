/** Who asks, as `authorize` says. */
export interface Access {
  /** The owner of the threads: another owner's thread is like one that does not exist. */
  readonly resourceId: string
  /** The name of the person, for the log. */
  readonly by?: string | undefined
  /** The dependencies of a run that begins or continues. Only over a harness. */
  readonly deps?: unknown
}

/** Who asks if there is no `authorize`: this machine. It also reaches runs without an owner. */
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

/** Who asks; a `Response` for a request that is refused. */
export async function checkAccess(
  request: Request,
  authorize: Authorize | undefined,
  named: RequestedPlace,
): Promise<Access | Response> {
  if (authorize === undefined) return isLocal(request) ? LOCAL : new Response('Forbidden', { status: 403 })
  let answer: unknown
  try {
    answer = await authorize(request, named)
  } catch {
    return new Response(null, { status: 500 })
  }
  if (answer instanceof Response) return answer
  return isAccess(answer) ? answer : new Response(null, { status: 404 })
}

function isAccess(value: unknown): value is Access {
  if (typeof value !== 'object' || value === null || !('resourceId' in value)) return false
  return typeof value.resourceId === 'string' && value.resourceId !== ''
}

/** True if host and origin are of this machine: no page of another site, and no name that points here, is served. */
function isLocal(request: Request): boolean {
  const host = request.headers.get('host') ?? new URL(request.url).host
  const origin = request.headers.get('origin')
  return isLoopback(`http://${host}`) && (origin === null || isLoopback(origin))
}

function isLoopback(address: string): boolean {
  try {
    const { hostname } = new URL(address)
    return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname)
  } catch {
    return false
  }
}
