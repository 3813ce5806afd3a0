import { HarnessError, messageOf } from '#contracts/errors.js'
import type { HarnessErrorCode } from '#contracts/errors.js'
import type { RunReport, StopReason } from '#contracts/result.js'
import type { Failure } from './decide.js'
import type { Breach } from '../state/limit-checks.js'
import type { LimitKind } from '../state/run-rules.js'

/** Thrown through the loop when the run's own rules end it. */
export class RunStopped extends HarnessError {
  readonly stopped: Failure

  constructor(stopped: Failure) {
    const { code, message } = failureError(stopped).error
    super(code, message)
    this.stopped = stopped
  }
}

/** The error of a run that its own rules end, and the limit for the `limit_reached` hooks. */
export function failureError(failure: Failure): { readonly error: HarnessError; readonly limit: Breach | null } {
  switch (failure.kind) {
    case 'limit': {
      const { breach, isBudget } = failure
      return { error: new HarnessError('limit_reached', limitMessage(breach, isBudget)), limit: breach }
    }
    case 'tool_retries': {
      const { toolName, budget, count } = failure
      const message = `Tool \`${toolName}\` failed in ${count} ${count === 1 ? 'turn' : 'turns in a row'}; its budget is ${budget} ${budget === 1 ? 'retry' : 'retries'}.`
      return {
        error: new HarnessError('tool_retries_exceeded', message),
        limit: { kind: 'tool_retries', limit: budget, count },
      }
    }
    case 'output': {
      const { retries, message: why } = failure
      const message = `The final answer did not fit after ${retries} corrective ${retries === 1 ? 'request' : 'requests'}: ${why}`
      return { error: new HarnessError('output_validation_failed', message), limit: null }
    }
    case 'unexpected':
      return { error: new HarnessError('unexpected_model_behavior', failure.message), limit: null }
    case 'blocked':
      return { error: new HarnessError(failure.code, failure.message), limit: null }
  }
}

function limitMessage({ kind, limit, count }: Breach, isBudget = false): string {
  if (isBudget) return `The budget of $${limit} is used up: with the next request, $${count} would be needed.`
  if (kind === 'stall') return `The run was stopped: ${count} turns in a row brought nothing new.`
  const isNeeded = kind === 'cost_usd' && count > limit
  const used =
    kind === 'tool_calls' ? `${count} calls would be needed` : `${count} ${isNeeded ? 'would be needed' : 'used'}`
  return `The run reached its limit: ${LIMIT_NAMES[kind] ?? kind}=${limit} (${used}).`
}

const LIMIT_NAMES: Readonly<Partial<Record<LimitKind, string>>> = {
  model_requests: 'max_model_requests',
  tool_calls: 'max_tool_calls',
}

/** The stop reason of a run that ended with an error of this code. */
export function stopReasonOf(code: HarnessErrorCode): StopReason {
  if (code === 'context_overflow') return 'provider_error'
  return isStopReason(code) ? code : 'error'
}

/** Whether the run's own rules decide this failure. Others come from outside, such as a cancellation. */
export function isByRules(code: HarnessErrorCode): boolean {
  return isStopReason(code) && CAUSES[code] === 'rules'
}

type FailureReason = StopReason & HarnessErrorCode

/** What causes the failures that are stop reasons too. */
const CAUSES: Readonly<Record<FailureReason, 'rules' | 'outside'>> = {
  limit_reached: 'rules',
  tool_retries_exceeded: 'rules',
  output_validation_failed: 'rules',
  unexpected_model_behavior: 'rules',
  provider_error: 'outside',
  cancelled_by_hook: 'outside',
  cancelled: 'outside',
  interrupted: 'outside',
  error: 'outside',
}

function isStopReason(code: HarnessErrorCode): code is FailureReason {
  return Object.hasOwn(CAUSES, code)
}

/**
 * `thrown` as the error that the caller gets, with the report of the run. The original is its cause, or itself; without the cause
 * if it has another text for readers.
 */
export function toHarnessError(thrown: unknown, run: RunReport | undefined, shownText?: string): HarnessError {
  const details = run === undefined ? {} : { run }
  if (!(thrown instanceof HarnessError)) {
    return new HarnessError('error', `The run failed: ${messageOf(thrown)}`, { ...details, cause: thrown })
  }
  const { code, message, status, retryable, retryAfterMs, failure } = thrown
  const cause = shownText === undefined ? (thrown.cause ?? thrown) : shownText === message && thrown.cause
  return new HarnessError(code, shownText ?? message, {
    ...(thrown.run !== undefined && { run: thrown.run }),
    ...details,
    ...(cause !== false && { cause }),
    retryable,
    ...(status !== undefined && { status }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(failure !== undefined && { failure }),
  })
}
