import type { PendingItem } from '#contracts/result.js'
import type { CheckedArguments } from '../../tools/boundary/check-arguments.js'
import type { ToolOutcome } from '../../tools/tool-spec.js'
import type { LeftChild } from '../child-run.js'
import type { RunContext } from '../run-context.js'
import type { RunSetup } from '../run-plan.js'
import type { BatchCall } from '../../state/batch-call.js'
import { admissionOf, withOtherCalls } from './admission.js'
import type { Admission, Admit } from './admission.js'
import { enteringOf, performCall } from './run-call.js'
import type { Calls } from './run-call.js'
import { completeUnrun } from './complete-call.js'
import { settleUnknown } from './unknown-outcome.js'

/** The most calls of a batch that are in progress at once. */
const AT_ONCE = 16

/** Performs batches of tool calls: what may run together does, in the bounds that the tools set. */
export class ToolBatchExecutor {
  readonly #calls: Calls
  readonly #admit: Admit
  /** The calls in progress. */
  #workers: readonly Promise<void>[] = []

  /** `begin` begins the other runs that a call has left. */
  constructor(context: RunContext, setup: RunSetup, begin: (callId: string, left: readonly LeftChild[]) => void) {
    this.#admit = admissionOf(context, setup)
    const enter = enteringOf(context, setup)
    const asksAfter = context.hasHook('after_tool_call')
    // A run that is left waits for its calls in progress, so that their outcomes are stored.
    context.abort.onLeave(() => (this.#workers.length === 0 ? undefined : Promise.all(this.#workers)))
    this.#calls = { context, setup, enter, asksAfter, begin, holds: (call) => this.#heldBy(call) }
  }

  /**
   * Runs the calls, or asks for approval if one needs it: then nothing of the batch runs. A call that fails does not stop
   * the others. Rejects only if the run cannot continue; then the others have been aborted and have ended. `checked` are
   * arguments that were checked when the reply came.
   */
  async perform(calls: readonly BatchCall[], checked: ReadonlyMap<string, CheckedArguments>): Promise<void> {
    const { context } = this.#calls
    const batch = this.#batch
    const admitting: Promise<Admission>[] = []
    for (const call of calls)
      admitting.push(this.#admit(call, { toolIndex: batch.indexOf(call), checked: checked.get(call.callId) }))
    const admissions = await Promise.all(admitting)
    if (context.abort.isAborted) throw context.signal.reason
    const items: PendingItem[] = []
    for (const { item } of admissions) if (item !== null) items.push(item)
    if (items.length > 0) return context.emit('approval_requested', { items: withOtherCalls(items, this.#batch) })
    for (const [index, group] of this.#groups(admissions).entries()) {
      // A sequential call begins when everything before it has ended, and holds everything after it.
      if (index > 0 && this.#isOpenBefore(group)) return
      await this.#together(group)
    }
  }

  /** Ends calls without running them. */
  async refuse(calls: readonly BatchCall[], outcome: ToolOutcome): Promise<void> {
    for (const call of calls) await completeUnrun(this.#calls, call, { toolIndex: this.#batch.indexOf(call), outcome })
  }

  /** Settles calls that had started when the process that ran them ended, by what their tools say. */
  async settleUnknown(calls: readonly BatchCall[]): Promise<void> {
    for (const call of calls) await settleUnknown(this.#calls, call, this.#batch.indexOf(call))
  }

  /** The calls in groups that may be in progress at once, in model order: a sequential call stands alone. */
  #groups(admissions: readonly Admission[]): readonly (readonly Admission[])[] {
    const groups: Admission[][] = []
    let open: Admission[] | null = null
    for (const admission of admissions) {
      const alone = this.#isAlone(admission.call)
      if (open !== null && !alone) open.push(admission)
      else groups.push([admission])
      open = alone ? null : (groups.at(-1) ?? null)
    }
    return groups
  }

  #isAlone({ name }: BatchCall): boolean {
    const { setup } = this.#calls
    return setup.plan.sequential || (setup.tools.get(name)?.sequential ?? false) !== false
  }

  #isOpenBefore([first]: readonly Admission[]): boolean {
    const before = first === undefined ? [] : this.#batch.slice(0, first.toolIndex)
    return before.some(({ settled }) => settled === null)
  }

  /** The calls that wait for a call that asks: everything after a sequential call; of another, from the next sequential call on. */
  #heldBy(call: BatchCall): readonly string[] {
    const later = this.#batch.slice(this.#batch.indexOf(call) + 1)
    const from = this.#isAlone(call) ? 0 : later.findIndex((each) => this.#isAlone(each))
    return from === -1 ? [] : later.slice(from).map(({ callId }) => callId)
  }

  async #together(admissions: readonly Admission[]): Promise<void> {
    const { context } = this.#calls
    const waiting = admissions.values()
    const failures: unknown[] = []
    const work = async (): Promise<void> => {
      for (const next of waiting) {
        if (context.abort.isAborted || context.abort.isLeaving) return
        try {
          await performCall(this.#calls, next)
        } catch (error) {
          failures.push(error)
          context.abort.abort(error)
        }
      }
    }
    const workers: Promise<void>[] = []
    while (workers.length < Math.min(AT_ONCE, admissions.length)) workers.push(work())
    this.#workers = workers
    await Promise.all(workers)
    this.#workers = []
    if (failures.length > 0) throw failures[0]
    if (context.abort.isAborted) throw context.signal.reason
  }

  get #batch(): readonly BatchCall[] {
    const { phase } = this.#calls.context.state
    return phase.at === 'batch' ? phase.calls : []
  }
}
