import { HarnessError } from '../../index.js'
import type { LogStore } from '../../index.js'
import type { AgUiOptions } from '../ag-ui/options.js'
import type { Dialect } from '../ai-sdk/chunk.js'
import type { UiStreamOptions } from '../ai-sdk/options.js'
import type { Hub } from '../hub/hub.js'
import type { ProjectionOptions } from '../projection.js'
import { LOCAL } from './back-end.js'
import type { Access } from './back-end.js'
import type { ServedHarness, ThreadIndex } from './harness-back-end.js'
import type { ServedSessions } from './sessions-back-end.js'

/** What a request wants to do. */
export type Action = 'read' | 'start' | 'answer' | 'steer' | 'stop'

/** The conversation and the run that a request names; null if it names none. */
export interface Named {
  readonly threadId: string | null
  readonly runId: string | null
  readonly action: Action
}

/** A `Response` is sent as it is; `Access` allows the request; anything else is 404. */
export type Authorize = (request: Request, named: Named) => unknown

/** How the handler of the AI SDK writes messages. */
export interface AiSdkOptions extends Omit<UiStreamOptions, keyof ProjectionOptions | 'dialect' | 'threadId'> {
  /**
   * The last steps of a run that a replay tells, at most: before them stands `data-skipped` with the number of the steps that were
   * left out, and the address of the whole conversation.  Default: all.
   */
  readonly replaySteps?: number | undefined
}

/** How the handler of Open Responses serves requests. */
export interface ResponsesHandlerOptions {
  /**
   * What `model` of a request can name: over a harness, other harnesses with the same log; over sessions, their modes. Other names
   * answer 404. Default: any name, served by the harness, or in the default mode.
   */
  readonly models?: Readonly<Record<string, ServedHarness | string>> | undefined
}

export interface HandlerOptions extends Omit<ProjectionOptions, 'after'> {
  /** The conversations. Or: `harness` and `log`. */
  readonly sessions?: ServedSessions | undefined
  /** A harness whose runs are the conversations: each continues the one before. */
  readonly harness?: ServedHarness | undefined
  /** The log of the harness's runs. */
  readonly log?: LogStore | undefined
  /** Which runs belong to a conversation, over a harness. Default: by `metadata.conversation_id`. */
  readonly threads?: ThreadIndex | undefined
  /** Reads the runs. Default: one of these handlers. */
  readonly hub?: Hub | undefined
  /**
   * Asked before anything else: a `Response` is sent as it is, `{ resourceId, by?, deps? }` allows the request for that owner, and
   * anything else answers 404. Default: requests to and from loopback hosts are allowed, for the owner `local`; others answer 403.
   */
  readonly authorize?: Authorize | undefined
  /** The largest body of a request, in bytes. Default 4,194,304. */
  readonly maxBodyBytes?: number | undefined
  /** The version of the AI SDK on the pages, if a request does not say. Default 7. */
  readonly dialect?: Dialect | undefined
  /** Options of AI SDK UI streams alone. */
  readonly aiSdk?: AiSdkOptions | undefined
  /** Options of AG-UI streams alone. */
  readonly agUi?: Pick<AgUiOptions, 'activities' | 'toolSchemas'> | undefined
  /** Options of Open Responses alone. */
  readonly responses?: ResponsesHandlerOptions | undefined
  /** Whether a message may contain a link to a file. Default: none may. */
  readonly allowUrl?: ((url: URL) => boolean) | undefined
  /**
   * Pages may bring tools, which they execute themselves: the `tools` of an AG-UI input, or of
   * a request of Open Responses. A call of one ends the stretch, and its
   * result comes as a tool message, or as `function_call_output`. A tool with the name of one of the server's is refused. Default false: they are not read.
   */
  readonly clientTools?: boolean | undefined
  /** A message while the run waits for people: `refuse` it, or `decline` what waits. Over a harness. Default `refuse`. */
  readonly newMessage?: 'refuse' | 'decline' | undefined
  /** The client that begins a run and disconnects stops it. Default false: the run continues without readers. */
  readonly stopOnDisconnect?: boolean | undefined
  /** A comment keeps a silent stream alive after so long, in ms. Default 15,000. */
  readonly heartbeatMs?: number | undefined
  /** Streams are closed after so long, in ms; clients come back. Default: never. */
  readonly maxStreamMs?: number | undefined
}

/** Throws `invalid_options` for handlers of nothing, or of both. */
export function checkSource({ sessions, harness, log }: HandlerOptions): void {
  const problem =
    sessions !== undefined
      ? harness !== undefined || log !== undefined
        ? 'got both: sessions have their own log and harnesses'
        : null
      : harness === undefined || log === undefined
        ? `got ${harness === undefined ? (log === undefined ? 'neither' : 'no `harness`') : 'no `log`'}`
        : null
  if (problem !== null)
    throw new HarnessError(
      'invalid_options',
      `Expected \`createHandlers\` to be given \`sessions\`, or \`harness\` and \`log\`; ${problem}.`,
    )
}

/** Who asks; a `Response` for a request that is refused. */
export async function accessOf(
  request: Request,
  authorize: Authorize | undefined,
  named: Named,
): Promise<Access | Response> {
  if (authorize === undefined) return isLocal(request) ? LOCAL : new Response('Forbidden', { status: 403 })
  let given: unknown
  try {
    given = await authorize(request, named)
  } catch {
    return new Response(null, { status: 500 })
  }
  if (given instanceof Response) return given
  const { resourceId } = (typeof given === 'object' && given !== null ? given : {}) as { readonly resourceId?: unknown }
  return typeof resourceId === 'string' && resourceId !== '' ? (given as Access) : new Response(null, { status: 404 })
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
