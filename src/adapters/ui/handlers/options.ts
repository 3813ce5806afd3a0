import { parse } from '#contracts/parse.js'
import { isObject } from '#util/json.js'
import {
  anything,
  boolean,
  functionOf,
  having,
  integer,
  leaf,
  list,
  milliseconds,
  oneOf,
  partial,
  record,
  string,
} from '#util/validate.js'
import type { LogStore } from '#core/log/log.js'
import type { StreamEvent } from '#core/state/events.js'
import type { AgUiOptions } from '../ag-ui/options.js'
import type { ModeHarness } from '#session/conversation/modes.js'
import { DIALECTS } from '../ai-sdk/chunk.js'
import type { Dialect, UiStreamOptions } from '../ai-sdk/chunk.js'
import type { Hub } from '../hub/hub.js'
import type { ProjectionOptions } from '../projection.js'
import type { Authorize } from './authorization.js'
import type { HostPaths } from './host-paths.js'
import type { ServedSessions } from './thread.js'

/** How the handler of the AI SDK writes messages. */
export interface AiSdkHandlerOptions extends Omit<UiStreamOptions, keyof ProjectionOptions | 'dialect' | 'threadId'> {
  /**
   * The last steps of a run that a replay has, at most: before them stands `data-skipped` with the number of the steps that were
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
  readonly models?: Readonly<Record<string, ModeHarness | string>> | undefined
}

/** The options, and what every handler shares. */
export interface ServedOptions extends HandlerOptions {
  readonly paths: HostPaths
}

export interface HandlerOptions extends Omit<ProjectionOptions, 'after'> {
  /** The conversations. Or: `harness` and `log`. */
  readonly sessions?: ServedSessions | undefined
  /** The harness of the conversations, in place of sessions. */
  readonly harness?: ModeHarness | undefined
  /** The log of the harness's conversations. */
  readonly log?: LogStore | undefined
  /** Removes secrets, over a harness whose own extensions do not: like `redact` of an extension. Over sessions: their `use`. */
  readonly redact?: ((event: StreamEvent) => StreamEvent) | undefined
  /** Reads the runs. Default: one of these handlers. */
  readonly hub?: Hub | undefined
  /**
   * Who asks: a `Response` is sent as it is, `{ resourceId, by?, deps?, metadata? }` allows the request for that owner, and anything
   * else answers 404. Default: `localOnly`, with a warning.
   */
  readonly authorize?: Authorize | undefined
  /** Origins of other pages that may send requests, such as `https://app.example.com`. Default: none but the server's own. */
  readonly origins?: readonly string[] | undefined
  /**
   * What pages may send as `remember` of an answer: `tool` and `category` by name, `rule` for any rule that allows. Default: nothing;
   * an answer that has it is refused.
   */
  readonly remember?: readonly ('tool' | 'category' | 'rule')[] | undefined
  /** The largest body of a request, in bytes. Default 4,194,304. */
  readonly maxBodyBytes?: number | undefined
  /** The version of the AI SDK on the pages, if a request does not say. Default 7. */
  readonly dialect?: Dialect | undefined
  /** Options of AI SDK UI streams alone. */
  readonly aiSdk?: AiSdkHandlerOptions | undefined
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
  /**
   * A message while the run waits for people: `decline` refuses what waits, and the run reads the message. Default `refuse`: the
   * message is refused by AG-UI and Open Responses; others queue it.
   */
  readonly newMessage?: 'refuse' | 'decline' | undefined
  /** The client that begins a run and disconnects stops it. Default false: the run continues without readers. */
  readonly stopOnDisconnect?: boolean | undefined
  /** A comment keeps a silent stream alive after so long, in ms. Default 15,000. */
  readonly heartbeatMs?: number | undefined
  /** Streams are closed after so long, in ms; clients come back. Default: never. */
  readonly maxStreamMs?: number | undefined
}

const HARNESS = having<ModeHarness>('a `Harness`', 'stream', 'streamResume', 'streamRecover', 'cancel', 'describe')
const AI_SDK = partial<AiSdkHandlerOptions>({
  replaySteps: integer(1),
  toolInputs: oneOf('stream', 'whole'),
  staticTools: list(string),
  titles: record(string),
  envelopes: boolean,
  usage: boolean,
  outputText: boolean,
  children: oneOf('status', 'message', 'none'),
})
const SHAPE = partial<HandlerOptions>({
  sessions: having<ServedSessions>('`Sessions`', 'for'),
  harness: HARNESS,
  log: having<LogStore>('a `LogStore`', 'append', 'read', 'inspect', 'list'),
  redact: functionOf(),
  hub: having<Hub>('a `Hub`', 'batches', 'open', 'close'),
  authorize: functionOf(),
  origins: list(string),
  remember: list(oneOf('tool', 'category', 'rule')),
  maxBodyBytes: integer(1),
  dialect: oneOf(...DIALECTS),
  aiSdk: AI_SDK,
  agUi: partial({ activities: boolean, toolSchemas: anything() }),
  responses: partial({ models: record(leaf<ModeHarness | string>('a harness, or the name of a mode', isServed)) }),
  allowUrl: functionOf(),
  clientTools: boolean,
  newMessage: oneOf('refuse', 'decline'),
  stopOnDisconnect: boolean,
  heartbeatMs: milliseconds,
  maxStreamMs: milliseconds,
  deltas: oneOf('live', 'settled'),
  reasoning: boolean,
  diagnostics: boolean,
  errorText: functionOf(),
  maxInlineBytes: integer(0),
  contentUrl: functionOf(),
})

/** Throws `invalid_options`. */
export function handlerOptions(options: HandlerOptions): HandlerOptions {
  return parse(SHAPE, options, '`createHandlers`')
}

function isServed(value: unknown): boolean {
  return typeof value === 'string' || isObject(value)
}
