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
  end: ChildEnd | null
}

interface ChildEnd {
  readonly usage: RunUsage
  readonly pending: readonly PendingItem[]
  /** With which the call finds it again; null for a run that never began. */
  readonly state: () => ResumeState | null
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

  /** Resolves when all have come to a pause or an end. */
  async settled(): Promise<void> {
    await Promise.all([...this.#children.values()].map(({ started }) => started.outcome.then(ignore, ignore)))
  }

  /** The call has ended: those that it has not waited for, or was stopped under, end with it. */
  async end(): Promise<void> {
    for (const { started, end } of this.#children.values()) {
      if (end === null) started.abort.abort(new HarnessError('cancelled', 'The call that started this run has ended.'))
    }
    await this.settled()
  }

  /** What the children that have paused ask, as items of the run that their call is in. */
  get waiting(): readonly PendingItem[] {
    return [...this.#children.values()].flatMap(({ end }) => end?.pending ?? [])
  }

  /** All that have come to a pause or an end: where the call is entered again, there may be no log that knows them. */
  get states(): readonly ResumeState[] {
    return [...this.#children.values()].flatMap(({ end }) => end?.state() ?? [])
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
      const pending = within(result.pending, prefix, this.#context.runId)
      child.end = { usage: result.usage, pending, state: () => result.resumeState }
      if (pending.length > 0) throw new ChildPaused()
      return result
    } catch (error) {
      const run = error instanceof HarnessError ? error.run : undefined
      child.end ??= { usage: run?.usage ?? NO_USAGE, pending: [], state: () => run?.resumeState ?? null }
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

function within(pending: readonly PendingItem[], prefix: string, parentRunId: string): readonly PendingItem[] {
  return pending.map((item) => ({ ...item, callId: prefix + item.callId, path: [parentRunId, ...item.path] }))
}

function ignore(): void {
  return undefined
}
