import { warn } from '#util/platform/node.js'
import { agUiHandler } from './ag-ui.js'
import { aiSdkHandler } from './ai-sdk.js'
import { eventsHandler } from './events.js'
import { HandlerContext } from './handler-context.js'
import type { Handler } from './http.js'
import type { HandlerOptions } from './options.js'
import { requestsHandler } from './requests.js'

/** Web-standard handlers. Each looks at the end of the path only, so that it can be mounted anywhere. */
export interface Handlers {
  /** Native server-sent events of runs and conversations. */
  readonly events: Handler
  /** The AI SDK UI message stream, for `useChat`. */
  readonly aiSdk: Handler
  /** AG-UI 1.0, for `HttpAgent` and CopilotKit. */
  readonly agUi: Handler
  /** Open Responses, for clients of OpenAI's Responses API. */
  readonly responses: Handler
  /** Messages, answers, steering, stop and recovery as JSON requests. */
  readonly requests: Handler
}

/**
 * Handlers of `Request → Response` over sessions, or over a harness and its log: those are sessions with one mode. They keep nothing
 * between requests but the hub and the conversations in use. Without `authorize` they serve this machine only, and say so. Throws
 * `invalid_options`.
 *
 * @example
 * const { aiSdk } = createHandlers({ sessions, authorize: (request) => ({ resourceId: userOf(request) }) })
 */
export function createHandlers(options: HandlerOptions): Handlers {
  const context = new HandlerContext(options)
  if (options.authorize === undefined) warn(LOCAL_ONLY, 'HandlersWarning')
  return {
    events: eventsHandler(context),
    aiSdk: aiSdkHandler(context),
    agUi: agUiHandler(context),
    responses: loadedOnce(async () => (await import('./responses.js')).responsesHandler(context)),
    requests: requestsHandler(context),
  }
}

const LOCAL_ONLY =
  '`createHandlers` was given no `authorize`: only requests of this machine are served. Write `authorize: localOnly` if that is meant.'

/** A handler that is loaded with its first request. */
function loadedOnce(load: () => Promise<Handler>): Handler {
  let handler: Promise<Handler> | undefined
  return async (request) => (await (handler ??= load()))(request)
}
