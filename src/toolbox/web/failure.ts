import { FileFailure } from '../workspace/failure.js'
import { escapeControls } from '../workspace/path-text.js'

/** What could not be fetched, in the words that the model reads; `errorType` is `FetchRefused`, `FetchFailed`, `HttpError` or the like. */
export function fetchFailure(errorType: string, message: string): FileFailure {
  return new FileFailure(errorType, escapeControls(message))
}

/** An address for a line of text: bounded. */
export function shownUrl(url: string): string {
  return url.length > 300 ? `${url.slice(0, 300)}…` : url
}
