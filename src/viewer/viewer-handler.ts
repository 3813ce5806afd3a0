import type { LogStore } from '#core/log/log.js'
import type { LiveViewerOptions } from './live-answers.js'

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
