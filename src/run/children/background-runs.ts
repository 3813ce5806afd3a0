import { agentSource, savedAs } from '#contracts/entry.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import { renderNotice } from '#contracts/notices.js'
import { NO_USAGE } from '#contracts/run-usage.js'
import type { HarnessResult, PendingItem, ResumeState } from '#contracts/result.js'
import type { RunUsage } from '#contracts/run-usage.js'
import { envelopeOf } from '#core/tools/boundary/envelope.js'
import { bound } from '#core/tools/boundary/truncate-output.js'
import type { ToolOutcome } from '#core/tools/tool-spec.js'
import { plainJson } from '#util/plain-json.js'
import type { BackgroundRun } from '#core/state/background-state.js'
import type { RunState } from '#core/state/state.js'
import type { Until } from '#core/loop/effects.js'
import { CallChildren, childRunId, itemsWithin } from './children.js'
import type { RunContext } from '#core/loop/run-context.js'
import { enterAgain } from './enter-again.js'
import type { RunSetup } from '#core/loop/run-plan.js'
import type { InputPort } from '#core/stream/input.js'
import type { BackgroundRuns, ChildrenPort, LeftChild } from '#core/loop/child-run.js'

/** The outcome of a background run, or its pause. */
type Settlement = (
  | { readonly kind: 'ended'; readonly outcome: ToolOutcome; readonly transcript: readonly TranscriptEntry[] }
  | { readonly kind: 'paused'; readonly items: readonly PendingItem[]; readonly state: ResumeState }
  | { readonly kind: 'left' }
) & { readonly usage: RunUsage }

interface KnownRun {
  /** Null if it could not be started again. */
  readonly child: LeftChild | null
  /** Null while it is in progress. */
  settlement: Settlement | null
  isReported: boolean
}

/** The background runs of one run, in this process. */
export class OtherRuns implements BackgroundRuns {
  readonly #context: RunContext
  readonly #setup: RunSetup
  /** By the id of the background run. */
  readonly #known = new Map<string, KnownRun>()
  #wake: () => void = doNothing

  constructor(context: RunContext, setup: RunSetup) {
    this.#context = context
    this.#setup = setup
    // A run that is left waits for its background runs, which are left too.
    context.abort.onLeave(() => {
      const open = [...this.#known.values()].filter(({ settlement }) => settlement === null)
      const outcomes = open.flatMap(({ child }) => child?.started.outcome ?? [])
      return outcomes.length === 0 ? undefined : Promise.allSettled(outcomes)
    })
  }

  begin(callId: string, left: readonly LeftChild[]): void {
    for (const child of left) this.#begin(`${callId}/${child.key}`, child)
  }

  /** Reports the runs that have ended, or that ask people. True if there are any. */
  async report(until: Until, input: InputPort | null): Promise<boolean> {
    await this.#findAgain()
    for (let hasReported = false; ;) {
      hasReported = (await this.#reportSettled()) || hasReported
      const isEnough = until === 'now' || (until === 'next' && (hasReported || (input?.waiting ?? 0) > 0))
      // Left together with its background runs, whose outcomes are not known here.
      if (this.#context.abort.isLeft) this.#context.signal.throwIfAborted()
      if (!this.#isInProgress || isEnough) return hasReported
      await this.#change(until === 'next' ? input : null)
    }
  }

  async end(): Promise<void> {
    const { isLeft } = this.#context.abort
    for (const { child, settlement } of this.#known.values())
      if (settlement === null && !isLeft) child?.started.abort.abort(new HarnessError('cancelled', PARENT_ENDED))
    while (this.#isInProgress) await this.#change(null)
    if (isLeft) return
    for (const run of this.#runs) {
      const settlement = this.#known.get(run.id)?.settlement ?? null
      const usage = settlement?.usage ?? NO_USAGE
      await this.#report(
        run,
        settlement?.kind === 'ended' ? settlement : { kind: 'ended', outcome: CANCELLED, usage, transcript: [] },
      )
    }
    this.#known.clear()
  }

  get #isInProgress(): boolean {
    return [...this.#known.values()].some(({ settlement }) => settlement === null)
  }

  /** The background runs without a report. */
  get #runs(): readonly BackgroundRun[] {
    return this.#context.state.background?.runs ?? []
  }

  #begin(id: string, child: LeftChild): void {
    const known: KnownRun = { child, settlement: null, isReported: false }
    this.#known.set(id, known)
    child.started.outcome
      .then(
        (result) => (known.settlement = this.#settlementOf(result, id)),
        (error: unknown) => (known.settlement = child.started.abort.isLeft ? LEFT : failed(error)),
      )
      .finally(() => this.#wake())
      .catch(doNothing)
    child.begin()
  }

  /** Starts the runs of an earlier process, or from before a pause. */
  async #findAgain(): Promise<void> {
    const missing = this.#runs.filter(({ id }) => !this.#known.has(id))
    await Promise.all(
      [...new Set(missing.map(({ callId }) => callId))].map(async (callId) => {
        const runs = missing.filter((run) => run.callId === callId)
        const found = await enterAgain(this.#context, this.#setup, runs)
        for (const { id, key } of runs) {
          const child = found.find((each) => each.key === key)
          if (child === undefined) this.#known.set(id, { child: null, settlement: LOST, isReported: false })
          else this.#begin(id, child)
        }
      }),
    )
  }

  async #reportSettled(): Promise<boolean> {
    let hasReported = false
    for (const run of this.#runs) {
      const known = this.#known.get(run.id)
      const settlement = known?.settlement ?? null
      if (known === undefined || settlement === null || settlement.kind === 'left' || known.isReported) continue
      known.isReported = true
      hasReported = (await this.#emit(run, settlement)) || hasReported
    }
    return hasReported
  }

  /** False if its questions have been emitted before. */
  async #emit(run: BackgroundRun, settlement: Exclude<Settlement, { kind: 'left' }>): Promise<boolean> {
    if (settlement.kind === 'ended') {
      this.#known.delete(run.id)
      await this.#report(run, settlement)
      return true
    }
    const { items, state } = settlement
    if (run.answers.length === 0 && JSON.stringify(run.waiting) === JSON.stringify(items)) return false
    const children = [this.#context.children.refer(state)]
    await this.#context.emit('approval_requested', { items, background: run.id, children })
    return true
  }

  async #report(
    run: BackgroundRun,
    { outcome, usage, transcript }: Extract<Settlement, { kind: 'ended' }>,
  ): Promise<void> {
    const { callId, toolName, childRunId, agent, task } = run
    // Once it is reported, nobody will continue it, nor the runs below it.
    if (outcome.kind !== 'succeeded') await this.#setup.plan.host.endChild(this.#context, childRunId)
    const spec = this.#setup.tools.get(toolName)
    const source = agentSource(agent, [transcript])
    const { ok, content } = envelopeOf(await bound(this.#setup, { spec, outcome, source: () => savedAs(source) }))
    const errorType = outcome.kind === 'failed' ? outcome.errorType : null
    const ending = errorType === null ? 'has ended' : `has failed (\`${errorType}\`)`
    const text = `\`${agent}\` ${ending}. Task: ${JSON.stringify(task)}. Run: ${childRunId}.\n\n${content}`
    await this.#context.emit('background_reported', {
      ...{ callId, toolName, childRunId, agent, ok, errorType },
      content: renderNotice({ kind: 'background_report', content: text.replace(NOTICE_TAG, '<\\') }),
      source,
      childUsage: usage,
    })
  }

  #settlementOf(result: HarnessResult<unknown>, id: string): Settlement {
    const { usage, text } = result
    if (result.status === 'paused') {
      const items = itemsWithin(result.pending, `${id}/`, this.#context.runId)
      return { kind: 'paused', items, state: result.resumeState, usage }
    }
    const { output } = result
    const content = typeof output === 'string' ? text : JSON.stringify(plainJson(output))
    return { kind: 'ended', outcome: { kind: 'succeeded', content }, usage, transcript: result.transcript }
  }

  /** Resolves when one of them has ended or paused, or the run receives a message. */
  async #change(input: InputPort | null): Promise<void> {
    let stopListening: (() => void) | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      stopListening = input?.onSend?.(resolve)
    })
    stopListening?.()
  }
}

/** In a fork, background runs begin again as child runs of the new run. */
export function otherRunsOfFork({ background }: RunState, runId: string): Pick<RunState, 'background'> {
  if (background === undefined) return {}
  const runs = background.runs.map((run) => {
    const own = childRunId(runId, run.callId, run.key)
    return { ...run, childRunId: own, waiting: [], answers: [], state: null }
  })
  return { background: { ...background, runs } }
}

function failed(error: unknown): Settlement {
  const { code, message, run } =
    error instanceof HarnessError ? error : new HarnessError('cancelled', 'The run was cancelled before it began.')
  const outcome = { kind: 'failed', errorType: code, content: message, retry: false } as const
  return { kind: 'ended', outcome, usage: run?.usage ?? NO_USAGE, transcript: run?.transcript ?? [] }
}

/** Content that ends the notice, or that begins one. */
const NOTICE_TAG = /<(?=\s*\/?\s*harness_notice)/gi

const PARENT_ENDED = 'The run that this one worked for has ended.'
const CANCELLED: ToolOutcome = { kind: 'failed', errorType: 'cancelled', content: PARENT_ENDED, retry: false }

const LEFT: Settlement = { kind: 'left', usage: NO_USAGE }

const LOST: Settlement = {
  kind: 'ended',
  outcome: {
    kind: 'failed',
    errorType: 'invalid_state',
    content: 'It was interrupted and could not be started again: its tool did not start it any more.',
    retry: false,
  },
  usage: NO_USAGE,
  transcript: [],
}

function doNothing(): void {
  return undefined
}

/** The runs under calls, as the core reaches them. */
export const childRuns: ChildrenPort<RunContext, RunSetup> = {
  ofCall: (context, setup, call) => new CallChildren(context, setup, { call }),
  inBackground: (context, setup) => new OtherRuns(context, setup),
}
