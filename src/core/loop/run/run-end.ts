import { cancelledError } from '#contracts/errors.js'
import type { HarnessError } from '#contracts/errors.js'
import type { HarnessResult, StopReason } from '#contracts/result.js'
import type { RunContext } from '../run-context.js'
import { RunStopped, failureError, stopReasonOf, toHarnessError } from '../run-failure.js'
import { resultOf } from '../run-result.js'
import type { HookContexts } from '../../extension/hooks.js'
import type { Breach } from '../../state/limit-checks.js'
import { decide } from '../decide.js'
import type { Failure } from '../decide.js'
import type { Ending } from '../turn/turn-driver.js'

/** The end of one run: its hooks, its last event, and what its caller gets. */
export class RunEnd {
  readonly #context: RunContext
  #stop: () => Promise<void> = () => Promise.resolve()
  #endForgotten: ((isPaused: boolean) => Promise<void>) | undefined
  #isAsked = false
  #ending: Promise<unknown> | undefined

  constructor(context: RunContext) {
    this.#context = context
    // A run that is ending is left only if it does not end in time.
    context.abort.onLeave(() => this.#ending)
  }

  /** `stop` ends other work of the run, before a run that fails ends. */
  onFailure(stop: () => Promise<void>): void {
    this.#stop = stop
  }

  /** `endForgotten` ends child runs that an earlier stretch of the run left behind, before this one pauses or ends. */
  onContinued(endForgotten: (isPaused: boolean) => Promise<void>): void {
    this.#endForgotten = endForgotten
  }

  complete<Output>(ending: Ending): Promise<HarnessResult<Output>> {
    const completing = this.#complete<Output>(ending)
    this.#ending = completing
    return completing
  }

  async #complete<Output>(ending: Ending): Promise<HarnessResult<Output>> {
    const context = this.#context
    const found = (): HarnessResult<Output> =>
      resultOf(context.state, ending as Ending & { output: Output }, context.documentMeans(context.responses))
    context.replayGiven()
    await this.#endForgotten?.(ending.pending.length > 0)
    await context.fromLog(context.children.load(context.state))
    const seen = found()
    await this.#askEnd({ result: seen, error: null, stopReason: seen.stopReason })
    // A hook that failed counts in the run's usage, and so does a text that was prepared until now.
    return context.emitResult(seen, found)
  }

  /**
   * Ends the run in an error: for its hooks, its log, its stream, and then its caller. The first error stays the run's
   * error, also if a hook fails after it.
   */
  fail(thrown: unknown): Promise<HarnessError> {
    const failing = this.#fail(thrown).then((error) => this.#context.errorForCaller(error))
    this.#ending = failing
    return failing
  }

  async #fail(thrown: unknown): Promise<HarnessError> {
    const context = this.#context
    context.replayGiven()
    if (context.hadEnded) return errorOf(context, thrown).error
    if (context.abort.isLeft) return this.#leave(errorOf(context, thrown).error)
    await this.#stop().catch(ignore)
    const { error, limit } = errorOf(context, thrown)
    const stopReason = stopReasonOf(error.code)
    await this.#endForgotten?.(false)
    // The run has failed already: a hook that fails now is reported, and changes nothing.
    if (limit !== null && context.hasBegun) await askLimit(context, limit).catch(ignore)
    await this.#askEnd({ result: null, error, stopReason }).catch(ignore)
    await context.emitFailure(error, stopReason)
    return this.#reported(error, stopReason)
  }

  /** The run stops without an end: whoever recovers it continues from its last stored event. */
  async #leave(error: HarnessError): Promise<HarnessError> {
    await this.#stop().catch(ignore)
    await this.#context.emitLeft(error)
    return this.#reported(error, 'interrupted')
  }

  async #reported(error: HarnessError, stopReason: StopReason): Promise<HarnessError> {
    const context = this.#context
    if (context.hasBegun) await context.fromLog(context.children.load(context.state)).catch(ignore)
    return toHarnessError(error, context.report(stopReason))
  }

  /** The `run_end` hooks are asked once, however the run ends. */
  async #askEnd(end: Omit<HookContexts['run_end'], 'usage'>): Promise<void> {
    const context = this.#context
    if (this.#isAsked || !context.hasBegun) return
    this.#isAsked = true
    if (context.hasHook('run_end')) await context.askHooks('run_end', { ...end, usage: context.state.usage })
  }
}

/** The cause of a run's end: the caller's wish, the reason that the run was aborted for, or else `thrown`. */
function errorOf(context: RunContext, thrown: unknown): ReturnType<typeof failureError> {
  const { abort, signal, recording } = context
  if (abort.byCaller) return { error: cancelledError(signal), limit: null }
  // The recorded run was aborted before its own rules ended it.
  const recorded = thrown instanceof RunStopped ? recording?.abort : undefined
  if (recorded !== undefined) return { error: recorded, limit: null }
  const cause: unknown = signal.aborted ? signal.reason : thrown
  return cause instanceof RunStopped
    ? failureError(renewed(context, cause.stopped))
    : { error: toHarnessError(cause, undefined), limit: null }
}

/** A limit with what is used now: other runs have been counted since. */
function renewed(context: RunContext, failure: Failure): Failure {
  if (failure.kind !== 'limit' || context.signal.aborted || !context.hasBegun) return failure
  const command = decide(context.state)
  return command.kind === 'fail' && command.failure.kind === 'limit' ? command.failure : failure
}

async function askLimit(context: RunContext, { kind, limit, count }: Breach): Promise<void> {
  if (!context.hasHook('limit_reached')) return
  await context.askHooks('limit_reached', { limitKind: kind, limitValue: limit, currentCount: count })
}

function ignore(): void {
  return undefined
}
