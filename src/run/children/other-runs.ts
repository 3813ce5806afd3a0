import { HarnessError } from '../../contracts/errors.js'
import { renderNotice } from '../../contracts/notices.js'
import { NO_USAGE } from '../../contracts/result.js'
import type { HarnessResult, PendingItem, ResumeState, RunUsage } from '../../contracts/result.js'
import { envelopeOf, renderEnvelope } from '../../tools/boundary/envelope.js'
import { withinBounds } from '../../tools/boundary/invoke.js'
import type { ToolOutcome } from '../../tools/outcome.js'
import { plainJson } from '../../util/plain-json.js'
import type { BackgroundRun } from '../machine/other-runs.js'
import type { RunState } from '../machine/state.js'
import type { Until } from '../core/effects.js'
import { childRunId, itemsWithin } from './children.js'
import type { RunContext } from '../core/context.js'
import { enterAgain } from './enter-again.js'
import type { Frozen } from '../core/frozen.js'
import type { InputPort } from '../stream/input.js'
import type { LeftChild } from './left-child.js'

/** What a run in the background has come to. */
type Came =
  | { readonly kind: 'ended'; readonly outcome: ToolOutcome; readonly usage: RunUsage }
  | {
      readonly kind: 'paused'
      readonly items: readonly PendingItem[]
      readonly state: ResumeState | null
      readonly usage: RunUsage
    }

interface Known {
  /** Null where it could not be started again. */
  readonly child: LeftChild | null
  /** Null while it is at work. */
  came: Came | null
  isTold: boolean
}

/** The runs in the background of one run, in this process. */
export class OtherRuns {
  readonly #context: RunContext
  readonly #frozen: Frozen
  /** By the id of the run among those of its parent. */
  readonly #known = new Map<string, Known>()
  #wake: () => void = ignore

  constructor(context: RunContext, frozen: Frozen) {
    this.#context = context
    this.#frozen = frozen
  }

  begin(callId: string, left: readonly LeftChild[]): void {
    for (const child of left) this.#begin(`${callId}/${child.key}`, child)
  }

  /** Reports the runs that have ended, or that ask people. True if there are any. */
  async report(until: Until, input: InputPort | null): Promise<boolean> {
    await this.#findAgain()
    for (let told = false; ;) {
      told = (await this.#tellSettled()) || told
      const isAtWork = [...this.#known.values()].some(({ came }) => came === null)
      const isEnough = until === 'now' || (until === 'next' && (told || (input?.waiting ?? 0) > 0))
      if (!isAtWork || isEnough) return told
      await this.#change(until === 'next' ? input : null)
    }
  }

  async end(): Promise<void> {
    for (const { child, came } of this.#known.values()) if (came === null) child?.started.abort.abort(endedWithParent())
    while ([...this.#known.values()].some(({ came }) => came === null)) await this.#change(null)
    for (const run of this.#runs) {
      const came = this.#known.get(run.id)?.came ?? null
      await this.#report(run, came?.kind === 'ended' ? came : { outcome: CANCELLED, usage: came?.usage ?? NO_USAGE })
    }
    this.#known.clear()
  }

  /** Those of which nothing has been reported yet. */
  get #runs(): readonly BackgroundRun[] {
    return this.#context.state.background?.runs ?? []
  }

  #begin(id: string, child: LeftChild): void {
    const known: Known = { child, came: null, isTold: false }
    this.#known.set(id, known)
    child.started.outcome
      .then(
        (result) => (known.came = this.#cameTo(result, id)),
        (error: unknown) => (known.came = failed(error)),
      )
      .finally(() => this.#wake())
      .catch(ignore)
    child.begin()
  }

  /** Those that were left behind in an earlier process, or before a pause. */
  async #findAgain(): Promise<void> {
    const missing = this.#runs.filter(({ id }) => !this.#known.has(id))
    const byCall = new Map<string, [BackgroundRun, ...BackgroundRun[]]>()
    for (const run of missing) {
      const same = byCall.get(run.callId)
      if (same === undefined) byCall.set(run.callId, [run])
      else same.push(run)
    }
    await Promise.all(
      [...byCall.values()].map(async (runs) => {
        const found = await enterAgain(this.#context, this.#frozen, runs)
        for (const { id, key } of runs) {
          const child = found.find((each) => each.key === key)
          if (child === undefined) this.#known.set(id, { child: null, came: LOST, isTold: false })
          else this.#begin(id, child)
        }
      }),
    )
  }

  async #tellSettled(): Promise<boolean> {
    let told = false
    for (const run of this.#runs) {
      const known = this.#known.get(run.id)
      if (known === undefined || known.came === null || known.isTold) continue
      known.isTold = true
      told = (await this.#tell(run, known.came)) || told
    }
    return told
  }

  async #tell(run: BackgroundRun, came: Came): Promise<boolean> {
    if (came.kind === 'ended') {
      this.#known.delete(run.id)
      await this.#report(run, came)
      return true
    }
    const { items, state } = came
    const isKnown = run.answers.length === 0 && JSON.stringify(run.waiting) === JSON.stringify(items)
    if (isKnown) return false
    const children = state === null ? [] : [this.#context.children.refer(state)]
    await this.#context.emit('approval_requested', { items, background: run.id, children })
    return true
  }

  async #report(run: BackgroundRun, { outcome, usage }: { outcome: ToolOutcome; usage: RunUsage }): Promise<void> {
    const { callId, toolName, childRunId, agent, task } = run
    const spec = this.#frozen.tools.get(toolName)
    const { ok, content, metadata } = envelopeOf(withinBounds(spec ?? {}, outcome))
    const about = { agent, run_id: childRunId, call_id: callId, task }
    const text = renderEnvelope({ ok, content, metadata: { ...about, ...metadata } })
    await this.#context.emit('background_reported', {
      ...{ callId, toolName, childRunId, agent, ok },
      errorType: outcome.kind === 'failed' ? outcome.errorType : null,
      // Still JSON, and no text in it can end the notice.
      content: renderNotice({ kind: 'background_report', content: text.replaceAll('</', '<\\/') }),
      source: { kind: 'agent', name: agent },
      childUsage: usage,
    })
  }

  #cameTo(result: HarnessResult<unknown>, id: string): Came {
    const { usage, text } = result
    if (result.status === 'paused') {
      const items = itemsWithin(result.pending, `${id}/`, this.#context.runId)
      return { kind: 'paused', items, state: result.resumeState, usage }
    }
    const { output } = result
    const content = typeof output === 'string' ? text : JSON.stringify(plainJson(output))
    return { kind: 'ended', outcome: { kind: 'succeeded', content }, usage }
  }

  /** Resolves when one of them has come to something, or somebody says something to the run. */
  async #change(input: InputPort | null): Promise<void> {
    let stopListening: (() => void) | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      stopListening = input?.onSend?.(resolve)
    })
    stopListening?.()
  }
}

/** In a fork, the runs in the background begin again under the new run. */
export function otherRunsOfFork({ background }: RunState, runId: string): Pick<RunState, 'background'> {
  if (background === undefined) return {}
  const runs = background.runs.map((run) => {
    const own = childRunId(runId, run.callId, run.key)
    return { ...run, childRunId: own, waiting: [], answers: [], state: null }
  })
  return { background: { ...background, runs } }
}

function failed(error: unknown): Came {
  const { code, message, run } =
    error instanceof HarnessError ? error : new HarnessError('cancelled', 'The run was cancelled before it began.')
  const outcome = { kind: 'failed', errorType: code, content: message, retry: false } as const
  return { kind: 'ended', outcome, usage: run?.usage ?? NO_USAGE }
}

function endedWithParent(): HarnessError {
  return new HarnessError('cancelled', 'The run that this one worked for has ended.')
}

const CANCELLED: ToolOutcome = {
  kind: 'failed',
  errorType: 'cancelled',
  content: 'The run that this one worked for has ended.',
  retry: false,
}

const LOST: Came = {
  kind: 'ended',
  outcome: {
    kind: 'failed',
    errorType: 'invalid_state',
    content: 'It was interrupted and could not be started again: its tool did not start it any more.',
    retry: false,
  },
  usage: NO_USAGE,
}

function ignore(): void {
  return undefined
}
