import { cutText } from '../../util/characters.js'
import { FileFailure } from '../workspace/failure.js'
import { escapeControls } from '../workspace/path-text.js'

/** A failure with the message that the model reads; `errorType` is `FetchRefused`, `FetchFailed`, `HttpError` or the like. */
export function fetchFailure(errorType: string, message: string): FileFailure {
  return new FileFailure(errorType, escapeControls(message))
}

/** An address for a message: bounded. */
export function shownUrl(url: string): string {
  return cutText(url, 300)
}
