import { getSystemErrorMap } from 'node:util'
import type { ToolOutcome } from '#core/tools/tool-spec.js'
import type { JsonObject } from '#util/json.js'

/** A path that a policy does not allow. The model sees the name of this class as `error_type`. */
export class PathValidationError extends Error {
  override readonly name: string = 'PathValidationError'
}

/** A call has exceeded its time limit. */
export class DeadlinePassed extends Error {
  override readonly name = 'DeadlinePassed'
}

export interface FileFailureDetails {
  /** The model can correct it by calling again. Default false. */
  readonly retry?: boolean
  readonly metadata?: JsonObject
}

/** A failure of a file tool, with the message that the model reads. */
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

/** Arguments that the model can correct. */
export function invalidInput(message: string, metadata: JsonObject = {}): FileFailure {
  return new FileFailure('InvalidInput', message, { retry: true, metadata })
}

/** `thrown` as a failure for the model; `undefined` for other errors, such as a bug or an abort. */
export function fileFailureOf(thrown: unknown, shownPath?: string): FileFailure | undefined {
  if (thrown instanceof FileFailure) return thrown
  if (thrown instanceof PathValidationError) return new FileFailure('PathValidationError', thrown.message)
  if (!isSystemError(thrown)) return undefined
  if (shownPath !== undefined && isMissing(thrown)) return notFound(shownPath)
  return systemFailure(thrown, shownPath)
}

/** A failure as an outcome; other errors are thrown again. */
export function failedOutcome(thrown: unknown, shownPath?: string): ToolOutcome {
  const failure = fileFailureOf(thrown, shownPath)
  if (failure === undefined) throw thrown
  const { errorType, message, retry, metadata } = failure
  return { kind: 'failed', errorType, content: message, retry, metadata }
}

/** True for an error of the operating system, with one of `codes` if any are given. */
export function isSystemError(thrown: unknown, ...codes: readonly string[]): thrown is NodeJS.ErrnoException {
  if (!(thrown instanceof Error) || !('code' in thrown) || typeof thrown.code !== 'string') return false
  if (!('syscall' in thrown)) return false
  return codes.length === 0 || codes.includes(thrown.code)
}

/** True if the path does not exist, or a part of it is not a folder. */
export function isMissing(thrown: unknown): boolean {
  return isSystemError(thrown, 'ENOENT', 'ENOTDIR')
}

export function notFound(shownPath: string): FileFailure {
  return new FileFailure('NotFound', `file not found: ${shownPath}`)
}

/** Node's own message contains the path on this machine, sometimes through a descriptor: the model gets the path that it gave. */
function systemFailure(error: NodeJS.ErrnoException, shownPath: string | undefined): FileFailure {
  const code = error.code ?? 'UNKNOWN'
  const description = error.errno === undefined ? undefined : getSystemErrorMap().get(error.errno)?.[1]
  const suffix = shownPath === undefined ? '' : `: ${shownPath}`
  return new FileFailure(code, `${description ?? 'the operation failed'} (${code})${suffix}`)
}
