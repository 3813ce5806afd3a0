import type { Hub } from '#adapters/ui/hub/hub.js'
import type { Authorize } from '#adapters/ui/handlers/authorization.js'
import type { LogStore } from '#core/log/log.js'
import type { HarnessStream } from '#core/stream/stream.js'
import type { Answer } from '#core/state/answers.js'
import type { ViewerOptions } from './gather.js'

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

/**
 * The same page from a server: it follows its runs as they go on, keeps its place, and catches up after a lost connection. Answers
 * `GET …/` with the page, `GET …/runs/{id}/events` with native events, and `POST …/runs/{id}/answers` with `answers`. It looks at the
 * end of the path only, so that it can be mounted anywhere.
 *
 * @example
 * const show = viewerHandler(log, { runId })
 * serve({ fetch: show, hostname: '127.0.0.1', port: 4000 })
 */
export function viewerHandler(log: LogStore, options: LiveViewerOptions = {}): (request: Request) => Promise<Response> {
  let loaded: Promise<(request: Request) => Promise<Response>> | undefined
  return async (request) => {
    loaded ??= import('./live-answers.js').then(({ liveAnswers }) => liveAnswers(log, options))
    return (await loaded)(request)
  }
}
