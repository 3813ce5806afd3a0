/** Mistakes of a caller: nothing is stored, and nothing changes. */
export type SessionErrorCode =
  | 'busy'
  | 'closed'
  | 'empty_message'
  | 'file_too_large'
  | 'invalid_answer'
  | 'invalid_options'
  | 'invalid_settings'
  | 'message_not_found'
  | 'queue_full'
  | 'thread_exists'
  | 'thread_not_found'
  | 'thread_owned'
  | 'too_many_files'
  | 'unknown_mode'
  | 'unsupported_media'

/** A refused call of a session. */
export class SessionError extends Error {
  override readonly name = 'SessionError'
  readonly code: SessionErrorCode

  constructor(code: SessionErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

export function sessionsClosed(): SessionError {
  return new SessionError('closed', 'The sessions are closed.')
}
