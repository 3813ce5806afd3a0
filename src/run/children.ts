import { createHash } from 'node:crypto'
import { HarnessError } from '../errors.js'
import { NO_USAGE, withUsage } from '../report.js'
import type { HarnessResult, PendingItem, ResumeState, RunUsage } from '../report.js'
import type { ChildRun, SpawnOptions } from '../tools/spec.js'
import { ChildPaused } from '../tools/suspension.js'
import type { StartedChild } from './child-run.js'
import type { RunContext } from './context.js'
import type { Frozen } from './frozen.js'
import type { BatchCall } from './state.js'

interface Child {
  readonly runId: string
  readonly started: StartedChild
  /** How it ended; null while it runs. */
  end: { readonly usage: RunUsage; readonly paused: HarnessResult<unknown> | null } | null
}

/** The runs that one call starts: what they use, and what they ask of people, is the call's. */
export class CallChildren {
  readonly #context: RunContext
  readonly #frozen: Frozen
  readonly #call: BatchCall
  readonly #children = new Map<string, Child>()

  constructor(context: RunContext, frozen: Frozen, call: BatchCall) {
    this.#context = context
    this.#frozen = frozen
    this.#call = call
  }

  /** Throws `invalid_options` for a key that was used already by this call. */
  spawn<Output>(options: SpawnOptions<Output>, signal: AbortSignal): ChildRun<Output> {
    const key = options.key ?? String(this.#children.size + 1)
    if (!/^[\w.:-]{1,64}$/.test(key)) {
      throw new HarnessError(
        'invalid_options',
        `Expected \`key\` to be 1 to 64 letters, digits, \`_\`, \`-\`, \`.\` or \`:\`, got \`${key}\`.`,
      )
    }
    const runId = childRunId(this.#context.runId, this.#call.callId, key)
    if (this.#children.has(runId)) {
      throw new HarnessError(
        'invalid_options',
        `Call \`${this.#call.callId}\` has started a run with the key \`${key}\` already.`,
      )
    }
    // In front of the call ids of a child, in what its parent asks of people.
    const prefix = `${this.#call.callId}/${key}/`
    const stored = this.#call.children.find((child) => child.runId === runId) ?? null
    const answers = this.#call.answers
      .filter(({ callId }) => callId.startsWith(prefix))
      .map((answer) => ({ ...answer, callId: answer.callId.slice(prefix.length) }))
    const started = this.#frozen.startChild(this.#context, this.#call.callId, {
      runId,
      options,
      stored,
      answers,
      signal,
    })
    const child: Child = { runId, started, end: null }
    this.#children.set(runId, child)
    const result = this.#watch(child, prefix)
    // A handler that does not look at it learns of it by the run's events.
    result.catch(() => undefined)
    return { runId, result: result as Promise<HarnessResult<Output>> }
  }

  /** Waits for those that still run; they are aborted when the call was stopped, or has not waited for them. */
  async end(stopped: 'aborted' | 'timed_out' | null): Promise<void> {
    const running = [...this.#children.values()].filter(({ end }) => end === null)
    const siblingWaits = this.waiting.items.length > 0
    for (const { started } of running) {
      if (stopped !== null || !siblingWaits)
        started.abort.abort(new HarnessError('cancelled', 'The call that started this run has ended.'))
    }
    await Promise.all(running.map(({ started }) => started.outcome.then(ignore, ignore)))
  }

  /** What the children that have paused ask, as items of the run that their call is in. */
  get waiting(): { readonly items: readonly PendingItem[]; readonly states: readonly ResumeState[] } {
    const paused = [...this.#children.values()].flatMap(({ end }) => (end?.paused ? [end.paused] : []))
    return {
      items: paused.flatMap(({ pending }) => pending),
      states: paused.flatMap(({ resumeState }) => (resumeState === null ? [] : [resumeState])),
    }
  }

  /** What they have used; null when there are none. */
  get usage(): RunUsage | null {
    if (this.#children.size === 0) return null
    return [...this.#children.values()].reduce(
      (sum, { end }) => (end === null ? sum : withUsage(sum, end.usage)),
      NO_USAGE,
    )
  }

  async #watch(child: Child, prefix: string): Promise<HarnessResult<unknown>> {
    try {
      const result = await child.started.outcome
      const paused = result.pending.length === 0 ? null : within(result, prefix, this.#context.runId)
      child.end = { usage: result.usage, paused }
      if (paused !== null) throw new ChildPaused()
      return result
    } catch (error) {
      child.end ??= { usage: (error instanceof HarnessError ? error.run?.usage : undefined) ?? NO_USAGE, paused: null }
      throw error
    }
  }
}

/** The same whenever the call comes to this child, so that a recovered parent finds it again. */
function childRunId(parentRunId: string, callId: string, key: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([parentRunId, callId, key]))
    .digest('hex')
  return `run_${digest.slice(0, 32)}`
}

function within(result: HarnessResult<unknown>, prefix: string, parentRunId: string): HarnessResult<unknown> {
  const pending = result.pending.map((item) => ({
    ...item,
    callId: prefix + item.callId,
    path: [parentRunId, ...item.path],
  }))
  return { ...result, pending }
}

function ignore(): void {
  return undefined
}
