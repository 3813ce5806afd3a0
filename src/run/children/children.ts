import { HarnessError } from '#contracts/errors.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import { NO_USAGE, withCall, withUsage } from '#contracts/run-usage.js'
import type { HarnessResult, PendingItem, ResumeState } from '#contracts/result.js'
import type { RunUsage } from '#contracts/run-usage.js'
import type { ChildRun, SpawnOptions, ToolOutcome } from '#core/tools/tool-spec.js'
import { wholeStart } from '#core/tools/boundary/input-summary.js'
import { ChildPaused } from '#core/tools/ask.js'
import type {
  CallRuns,
  ChildStart,
  LeftChild,
  StartedChild,
  Within,
  ParentCall,
  UsedRuns,
} from '#core/loop/child-run.js'
import type { RunContext } from '#core/loop/run-context.js'
import type { RunSetup } from '#core/loop/run-plan.js'
import { answersOf, whenUnknown } from '#core/loop/tool-context.js'
import type { StoredChild } from '#core/state/child-state.js'
import { sha256 } from '#util/platform/sha256.js'

interface Child {
  readonly runId: string
  readonly started: StartedChild
  /** It is a program: its calls are calls of the run. */
  readonly isProgram: boolean
  /** How it ended; null while it runs. */
  end: ChildEnd | null
}

interface ChildEnd {
  readonly usage: RunUsage
  readonly pending: readonly PendingItem[]
  readonly isCompleted: boolean
  /** Null for a run that never began. */
  readonly state: () => ResumeState | null
  readonly transcript: readonly TranscriptEntry[]
}

/** The runs that one call starts. Their usage and their questions belong to the call, except those of background runs. */
export class CallChildren implements CallRuns {
  readonly #context: RunContext
  readonly #setup: RunSetup
  readonly #call: ParentCall
  readonly #children = new Map<string, Child>()
  readonly #left = new Map<string, LeftChild>()
  readonly #isAgain: boolean

  /** `isAgain`: the call has ended before; its runs exist. */
  constructor(
    context: RunContext,
    setup: RunSetup,
    { call, isAgain = false }: { readonly call: ParentCall; readonly isAgain?: boolean },
  ) {
    this.#context = context
    this.#setup = setup
    this.#call = call
    this.#isAgain = isAgain
  }

  /** Throws `invalid_options` for a key that was used already by this call. */
  spawn<Output>(options: SpawnOptions<Output>, signal: AbortSignal): ChildRun<Output> {
    const key = options.key ?? String(this.#children.size + this.#left.size + 1)
    if (!/^[\w.:-]{1,64}$/.test(key)) {
      throw new HarnessError(
        'invalid_options',
        `Expected \`key\` to be 1 to 64 letters, digits, \`_\`, \`-\`, \`.\` or \`:\`, got \`${key}\`.`,
      )
    }
    const runId = childRunId(this.#context.runId, this.#call.callId, key)
    if (this.#children.has(runId) || this.#left.has(runId)) {
      throw new HarnessError(
        'invalid_options',
        `Call \`${this.#call.callId}\` has started a run with the key \`${key}\` already.`,
      )
    }
    if ((options.background ?? false) !== false) return this.#leave(runId, key, options)
    const started = this.#start(runId, key, { options, signal, ...(this.#isAgain && { isKnown: true }) })
    const child: Child = { runId, started, isProgram: options.as === 'self', end: null }
    this.#children.set(runId, child)
    const result = this.#watch(child, `${this.#call.callId}/${key}/`)
    // A handler may ignore it.
    result.catch(ignore)
    return { runId, result: result as Promise<HarnessResult<Output>> }
  }

  #start(
    runId: string,
    key: string,
    start: Pick<ChildStart, 'options' | 'signal' | 'within' | 'isKnown'>,
  ): StartedChild {
    // Before the call ids of a child, in the pending items of its parent.
    const prefix = `${this.#call.callId}/${key}/`
    const stored = this.#call.children.find((child) => child.runId === runId) ?? null
    const answers = this.#call.answers
      .filter(({ callId }) => callId.startsWith(prefix))
      .map(({ key: _, ...answer }) => ({ ...answer, callId: answer.callId.slice(prefix.length) }))
    const { callId } = this.#call
    return this.#setup.plan.host.startChild(this.#context, this.#setup, { runId, callId, stored, answers, ...start })
  }

  /** Checks its options now; it begins when the call has succeeded. */
  #leave<Output>(runId: string, key: string, options: SpawnOptions<Output>): ChildRun<Output> {
    const line = typeof options.background === 'object' ? options.background : null
    const spec = this.#setup.tools.get(this.#call.name)
    if (spec !== undefined && whenUnknown(spec) !== 'retry') throw notEnteredAgain(spec.name)
    const { opened, open, shut } = gate()
    const within: Within = async (signal, work) => {
      await opened
      return line === null ? work() : line.within(this.#context.runId, signal, work)
    }
    const started = this.#start(runId, key, { options, signal: this.#context.signal, within })
    started.outcome.catch(ignore)
    const drop = (): void => {
      started.abort.release()
      shut(new HarnessError('cancelled', 'The call that would have left this run in the background did not succeed.'))
    }
    const { agentName: agent = 'default', prompt } = options
    const text =
      typeof prompt === 'string' ? prompt : prompt.map((part) => (part.type === 'text' ? part.text : '')).join(' ')
    const task = wholeStart(text, LONGEST_TASK)
    this.#left.set(runId, { key, childRunId: runId, agent, task, started, begin: open, drop })
    const result = Promise.reject<HarnessResult<Output>>(notWaitedFor(runId))
    result.catch(ignore)
    return { runId, result }
  }

  /** The background runs. */
  get left(): readonly LeftChild[] {
    return [...this.#left.values()]
  }

  /** The background runs, to be begun now. */
  takeLeft(): readonly LeftChild[] {
    const { left } = this
    this.#left.clear()
    return left
  }

  /** Background runs that have not been taken never begin. */
  dropLeft(): void {
    for (const child of this.takeLeft()) child.drop()
  }

  /** The runs of the call once it has ended. `entered`: the arguments of its handler, as JSON text. */
  usedBy(outcome: ToolOutcome, entered: string): UsedRuns {
    const childUsage = this.usage
    const used = childUsage !== null && { childUsage }
    if (outcome.kind !== 'succeeded' || this.#left.size === 0) return { ...used }
    const answers = answersOf(this.#call)
    const again = { arguments: entered, ...(answers.size > 0 && { askedBefore: Object.fromEntries(answers) }) }
    const background = this.left.map(({ key, childRunId, agent, task }) => ({ key, childRunId, agent, task, ...again }))
    return { ...used, background }
  }

  /** Resolves when all have paused or ended. */
  async settled(): Promise<void> {
    await Promise.all([...this.#children.values()].map(({ started }) => started.outcome.then(ignore, ignore)))
  }

  /** The call has ended: the runs that it has not waited for end with it. */
  async end(): Promise<void> {
    if (this.isLeft) return this.settled()
    for (const { started, end } of this.#children.values()) {
      if (end === null) started.abort.abort(new HarnessError('cancelled', 'The call that started this run has ended.'))
    }
    await this.settled()
  }

  /** The call has an outcome: nobody will continue its runs, nor those below them. */
  async endOpen(): Promise<void> {
    if (this.isLeft || this.#context.abort.isLeft) return
    for (const { runId, end } of this.#children.values())
      if (end?.isCompleted !== true) await this.#setup.plan.host.endChild(this.#context, runId)
  }

  /** Some child was left: its outcome is not known here. */
  get isLeft(): boolean {
    return [...this.#children.values()].some(({ started }) => started.abort.isLeft)
  }

  /** Some child has paused. */
  get isWaiting(): boolean {
    return this.waiting.length > 0
  }

  /** The pending items of the children that have paused, as items of the run of their call. */
  get waiting(): readonly PendingItem[] {
    return [...this.#children.values()].flatMap(({ end }) => end?.pending ?? [])
  }

  /** The states of those that have paused or ended. */
  get states(): readonly StoredChild[] {
    const documents = [...this.#children.values()].flatMap(({ end }) => end?.state() ?? [])
    return documents.map((document) => this.#context.children.refer(document))
  }

  /** Their conversations. */
  get transcripts(): readonly (readonly TranscriptEntry[])[] {
    return [...this.#children.values()].flatMap(({ end }) => (end === null ? [] : [end.transcript]))
  }

  /** Their usage; null if there are none. */
  get usage(): RunUsage | null {
    if (this.#children.size === 0) return null
    return [...this.#children.values()].reduce((sum, { end, isProgram }) => {
      if (end === null) return sum
      return isProgram ? withCall(sum, end.usage) : withUsage(sum, end.usage)
    }, NO_USAGE)
  }

  async #watch(child: Child, prefix: string): Promise<HarnessResult<unknown>> {
    try {
      const result = await child.started.outcome
      const pending = itemsWithin(result.pending, prefix, this.#context.runId)
      const isCompleted = pending.length === 0
      child.end = {
        usage: result.usage,
        pending,
        isCompleted,
        state: () => result.resumeState,
        transcript: result.transcript,
      }
      if (pending.length > 0) throw new ChildPaused()
      return result
    } catch (error) {
      const run = error instanceof HarnessError ? error.run : undefined
      child.end ??= {
        usage: run?.usage ?? NO_USAGE,
        pending: [],
        isCompleted: false,
        state: () => run?.resumeState ?? null,
        transcript: run?.transcript ?? [],
      }
      throw error
    }
  }
}

/** Characters of a task that are stored with its report. */
const LONGEST_TASK = 200

function notEnteredAgain(toolName: string): HarnessError {
  return new HarnessError(
    'invalid_options',
    `After a crash, a background run is found by entering its tool again: give \`${toolName}\` \`onUnknownOutcome: 'retry'\`.`,
  )
}

function notWaitedFor(runId: string): HarnessError {
  return new HarnessError(
    'invalid_state',
    `Run \`${runId}\` is a background run: it begins when the call has ended, and its report is a message.`,
  )
}

function gate(): { opened: Promise<void>; open: () => void; shut: (reason: Error) => void } {
  let [open, shut]: [() => void, (reason: Error) => void] = [ignore, ignore]
  const opened = new Promise<void>((resolve, reject) => ([open, shut] = [resolve, reject]))
  opened.catch(ignore)
  return { opened, open, shut }
}

/** The same for every entry of the call, so that a recovered parent finds its child. */
export function childRunId(parentRunId: string, callId: string, key: string): string {
  const digest = sha256(JSON.stringify([parentRunId, callId, key]))
  return `run_${digest.slice(0, 32)}`
}

export function itemsWithin(
  pending: readonly PendingItem[],
  prefix: string,
  parentRunId: string,
): readonly PendingItem[] {
  return pending.map(({ otherCalls, ...item }) => ({
    ...item,
    callId: prefix + item.callId,
    ...(otherCalls && { otherCalls: otherCalls.map((call) => ({ ...call, callId: prefix + call.callId })) }),
    path: [parentRunId, ...item.path],
  }))
}

function ignore(): void {
  return undefined
}
