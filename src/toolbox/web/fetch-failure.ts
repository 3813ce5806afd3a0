import { withoutCredentials } from '#util/secrets.js'
import { cutText } from '#util/characters.js'
import { FileFailure } from '../workspace/file-failure.js'
import { escapeControls } from '../workspace/path-text.js'

/** A failure with the message that the model reads; `errorType` is `FetchRefused`, `FetchFailed`, `HttpError` or the like. */
export function fetchFailure(errorType: string, message: string): FileFailure {
  return new FileFailure(errorType, escapeControls(message))
}

/** A failure with the address of the page that it is about, which its message may quote. */
export function failureAt(url: URL, thrown: unknown): unknown {
  if (!(thrown instanceof FileFailure)) return thrown
  const { errorType, message, retry, metadata } = thrown
  return new FileFailure(errorType, message, { retry, metadata: { ...metadata, final_url: url.href } })
}

/** An address for a message: bounded, without a password. */
export function shownUrl(url: string): string {
  return cutText(withoutCredentials(url), 300)
}
