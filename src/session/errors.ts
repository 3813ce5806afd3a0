import { HarnessError, messageOf } from '#contracts/errors.js'
import type { HarnessErrorCode } from '#contracts/errors.js'
import { warn } from '#util/platform/node.js'

const SESSION_CODES = [
  'busy',
  'closed',
  'empty_message',
  'file_too_large',
  'invalid_answer',
  'invalid_options',
  'invalid_settings',
  'message_not_found',
  'queue_full',
  'thread_exists',
  'thread_not_found',
  'thread_owned',
  'too_many_files',
  'unknown_mode',
  'unknown_model',
  'unsupported_media',
] as const

/** Mistakes of a caller: nothing is stored, and nothing changes. */
export type SessionErrorCode = (typeof SESSION_CODES)[number]

/** A refused call of a session. */
export class SessionError extends Error {
  override readonly name = 'SessionError'
  readonly code: SessionErrorCode

  constructor(code: SessionErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

export function threadNotFound(threadId: string): SessionError {
  return new SessionError('thread_not_found', `There is no thread \`${threadId}\`.`)
}

/** An error as events have it. */
export interface StoredError {
  readonly code: SessionErrorCode | HarnessErrorCode
  readonly message: string
}

/** The error that was stored. */
export function errorOf({ code, message }: StoredError): Error {
  const own = SESSION_CODES.find((each) => each === code)
  return own === undefined ? new HarnessError(code as HarnessErrorCode, message) : new SessionError(own, message)
}

export function storedError({ code, message }: HarnessError | SessionError): StoredError {
  return { code, message }
}

/** Tells the process what nobody waits for. */
export function tellProcess(threadId: string, what: string): void {
  warn(`Thread \`${threadId}\`: ${what}`, 'SessionWarning')
}

/** A log that cannot be read. */
export function isDamage(thrown: unknown): thrown is HarnessError {
  return thrown instanceof HarnessError && thrown.code === 'invalid_log'
}

/** An error with a code: what was thrown, or what it was the cause of. */
export function codedError(thrown: unknown): HarnessError | SessionError {
  if (thrown instanceof HarnessError || thrown instanceof SessionError) return thrown
  return new HarnessError('error', `The run cannot go on: ${messageOf(thrown)}`, { cause: thrown })
}

export function sessionsClosed(): SessionError {
  return new SessionError('closed', 'The sessions are closed.')
}
