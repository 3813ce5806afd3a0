import { causeWithoutSecrets, withoutCredentials, withoutSecrets } from '#util/secrets.js'
import { failureOfStatus } from './provider-failure.js'
import type { ProviderFailure } from './provider-failure.js'
import type { RunReport } from './result.js'

/** Why a call of this library failed. The list is closed. */
export type HarnessErrorCode =
  | 'invalid_options'
  | 'invalid_state'
  | 'invalid_answer'
  | 'closed'
  | 'missing_model'
  | 'missing_key'
  | 'missing_dependency'
  | 'provider_error'
  | 'context_overflow'
  | 'limit_reached'
  | 'tool_retries_exceeded'
  | 'output_validation_failed'
  | 'unexpected_model_behavior'
  | 'cancelled_by_hook'
  | 'cancelled'
  | 'interrupted'
  | 'hook_failed'
  | 'guard_blocked'
  | 'store_failure'
  | 'invalid_log'
  | 'run_not_found'
  | 'run_exists'
  | 'run_owned'
  | 'replay_mismatch'
  | 'error'

export interface HarnessErrorDetails {
  readonly cause?: unknown
  readonly run?: RunReport
  /** HTTP status of the provider's answer, if there was one. */
  readonly status?: number
  /** True if asking again later could succeed. */
  readonly retryable?: boolean
  /** How long the provider asks to wait, in ms. */
  readonly retryAfterMs?: number
  /** Why a provider gave no answer. Default: what the code and the status say. */
  readonly failure?: ProviderFailure
}

/** The only error of this library: a code from a closed list, the cause, and the run so far. */
export class HarnessError extends Error {
  override readonly name: string
  readonly code: HarnessErrorCode
  /** The run when it failed; absent if none had begun. */
  readonly run: RunReport | undefined
  readonly status: number | undefined
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined
  /** Why a provider gave no answer; undefined for an error that has nothing to do with a provider. */
  readonly failure: ProviderFailure | undefined

  constructor(code: HarnessErrorCode, message: string, details: HarnessErrorDetails = {}) {
    super(shownMessage(message), 'cause' in details ? { cause: causeWithoutSecrets(details.cause) } : undefined)
    // Errors of aborts have this name everywhere.
    this.name = code === 'cancelled' ? 'AbortError' : 'HarnessError'
    this.code = code
    this.run = details.run
    this.status = details.status
    this.retryable = details.retryable ?? false
    this.retryAfterMs = details.retryAfterMs
    this.failure = details.failure ?? failureOfCode(code, details.status)
    if (this.run === undefined) return
    // Node prints all members of an error that nobody catches, and this one has the transcript.
    Object.defineProperty(this, 'run', { enumerable: false })
    this.stack = `${this.stack ?? ''}\n    run ${this.run.runId}`
  }

  /** As `console.log` shows it: the code, the message, the run and the host's line; `stack` has all lines. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    const { cause, run, stack = '' } = this
    const line = stack.split('\n').find((each) => /^\s+at /.test(each) && !/node:|[\\/]node_modules[\\/]/.test(each))
    return [
      `${this.name} [${this.code}]: ${this.message}`,
      ...(run === undefined ? [] : [`    run ${run.runId}`]),
      ...(cause instanceof Error && !this.message.includes(cause.message) ? [`    cause: ${cause.message}`] : []),
      ...(line === undefined ? [] : [line]),
    ].join('\n')
  }
}

function failureOfCode(code: HarnessErrorCode, status: number | undefined): ProviderFailure | undefined {
  if (code === 'provider_error') return failureOfStatus(status)
  return code === 'context_overflow' ? 'context' : code === 'missing_key' ? 'auth' : undefined
}

const oversized = new WeakSet<Error>()

/** Notes that a request was refused since it has too many bytes, or too many or too large pictures. */
export function markOversized(error: Error): void {
  oversized.add(error)
}

export function isOversized(error: unknown): boolean {
  return error instanceof Error && oversized.has(error)
}

/**
 * Thrown by a tool's handler to let the model try again, with `message` for the model. Counts against the tool's retry
 * budget.
 */
export class ModelRetry extends Error {
  override readonly name = 'ModelRetry'
}

/** Without passwords in addresses, and without any known secret. */
function shownMessage(text: string): string {
  return withoutSecrets(withoutCredentials(text))
}

/** The message of a thrown value, without passwords in addresses and without any known secret. */
export function messageOf(thrown: unknown): string {
  return shownMessage(thrown instanceof Error ? thrown.message : typeof thrown === 'string' ? thrown : 'unknown error')
}

/** The error for the abort of `signal`, with its reason as the cause. */
export function cancelledError(signal: AbortSignal, run?: RunReport): HarnessError {
  const details = { cause: signal.reason as unknown, ...(run !== undefined && { run }) }
  return new HarnessError('cancelled', 'The run was cancelled.', details)
}
