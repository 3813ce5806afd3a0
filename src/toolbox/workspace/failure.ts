import { getSystemErrorMap } from 'node:util'
import type { ToolOutcome } from '../../tools/outcome.js'
import type { JsonObject } from '../../util/json.js'

/** A path that a policy does not let through. The model sees the name of this class as `error_type`. */
export class PathValidationError extends Error {
  override readonly name: string = 'PathValidationError'
}

/** A call took longer than it may. */
export class DeadlinePassed extends Error {
  override readonly name = 'DeadlinePassed'
}

export interface FileFailureDetails {
  /** The model can mend it by calling again. Default false. */
  readonly retry?: boolean
  readonly metadata?: JsonObject
}

/** What a file tool could not do, in the words that the model reads. */
export class FileFailure extends Error {
  override readonly name = 'FileFailure'
  /** `NotFound`, `PathTypeError`, `InvalidInput`, or the code of an error of the operating system such as `EACCES`. */
  readonly errorType: string
  readonly retry: boolean
  readonly metadata: JsonObject

  constructor(errorType: string, message: string, { retry = false, metadata = {} }: FileFailureDetails = {}) {
    super(message)
    this.errorType = errorType
    this.retry = retry
    this.metadata = metadata
  }
}

/** `thrown` as a failure for the model, or `undefined` when it is none of the file tools' (a bug, an abort). */
export function fileFailureOf(thrown: unknown, shownPath?: string): FileFailure | undefined {
  if (thrown instanceof FileFailure) return thrown
  if (thrown instanceof PathValidationError) return new FileFailure('PathValidationError', thrown.message)
  if (!isSystemError(thrown)) return undefined
  if (shownPath !== undefined && isMissing(thrown)) return notFound(shownPath)
  return systemFailure(thrown, shownPath)
}

/** A failure as an outcome; what is no failure of the file tools is thrown again. */
export function failedOutcome(thrown: unknown, shownPath?: string): ToolOutcome {
  const failure = fileFailureOf(thrown, shownPath)
  if (failure === undefined) throw thrown
  const { errorType, message, retry, metadata } = failure
  return { kind: 'failed', errorType, content: message, retry, metadata }
}

/** Whether `thrown` is an error of the operating system, with one of `codes` when there are any. */
export function isSystemError(thrown: unknown, ...codes: readonly string[]): thrown is NodeJS.ErrnoException {
  if (!(thrown instanceof Error) || !('code' in thrown) || typeof thrown.code !== 'string') return false
  if (!('syscall' in thrown)) return false
  return codes.length === 0 || codes.includes(thrown.code)
}

/** Nothing is there, or what is taken for a folder on the way is none. */
export function isMissing(thrown: unknown): boolean {
  return isSystemError(thrown, 'ENOENT', 'ENOTDIR')
}

export function notFound(shownPath: string): FileFailure {
  return new FileFailure('NotFound', `file not found: ${shownPath}`)
}

/** Node's own message names the path on this machine, sometimes through a descriptor: the model gets the one it gave. */
function systemFailure(error: NodeJS.ErrnoException, shownPath: string | undefined): FileFailure {
  const code = error.code ?? 'UNKNOWN'
  const words = error.errno === undefined ? undefined : getSystemErrorMap().get(error.errno)?.[1]
  const where = shownPath === undefined ? '' : `: ${shownPath}`
  return new FileFailure(code, `${words ?? 'the operation failed'} (${code})${where}`)
}
