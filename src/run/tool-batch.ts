import type { PendingItem } from '../report.js'
import { settle } from './abort.js'
import type { RunContext } from './context.js'
import type { Frozen } from './frozen.js'
import type { BatchCall } from './state.js'
import { checkCall, performCall } from './tool-call.js'

/** How many calls of a batch are under way at once. */
const AT_ONCE = 16

/** Performs a batch of tool calls: what may run together does, in the bounds that the tools set. */
export class ToolBatchExecutor {
  readonly #context: RunContext
  readonly #frozen: Frozen

  constructor(context: RunContext, frozen: Frozen) {
    this.#context = context
    this.#frozen = frozen
  }

  /**
   * Runs the calls, or asks for approval where one needs it: then nothing of the batch runs. A call that fails does not
   * stop the others. Rejects only when the run cannot go on; then the others have been aborted and have ended.
   */
  async perform(calls: readonly BatchCall[]): Promise<void> {
    const items = await this.#needApproval(calls)
    if (items.length > 0) return this.#context.emit('approval_requested', { items })
    for (const group of this.#groups(calls)) await this.#together(group)
  }

  /** The calls in runs of what may be under way at once, in model order: a sequential call stands alone. */
  #groups(calls: readonly BatchCall[]): readonly BatchCall[][] {
    const groups: BatchCall[][] = []
    let open: BatchCall[] | null = null
    for (const call of calls) {
      const alone = this.#frozen.sequential || this.#frozen.tools.get(call.name)?.sequential === true
      if (open !== null && !alone) open.push(call)
      else groups.push([call])
      open = alone ? null : (groups.at(-1) ?? null)
    }
    return groups
  }

  async #together(calls: readonly BatchCall[]): Promise<void> {
    const waiting = [...calls]
    const failures: unknown[] = []
    const work = async (): Promise<void> => {
      for (let call = waiting.shift(); call !== undefined && !this.#context.signal.aborted; call = waiting.shift()) {
        try {
          await performCall(this.#context, this.#frozen, call, this.#indexOf(call))
        } catch (error) {
          failures.push(error)
          this.#context.abort.abort(error)
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, calls.length) }, work))
    if (failures.length > 0) throw failures[0]
    this.#context.signal.throwIfAborted()
  }

  #indexOf(call: BatchCall): number {
    const { phase } = this.#context.state
    return phase.at === 'batch' ? phase.calls.indexOf(call) : 0
  }

  /** Asked before anything of the batch has run, and not again once a person has answered. */
  async #needApproval(calls: readonly BatchCall[]): Promise<PendingItem[]> {
    const { phase } = this.#context.state
    if (phase.at !== 'batch' || phase.calls.some((call) => call.started || call.answer !== null)) return []
    const items: PendingItem[] = []
    for (const call of calls) if (await this.#needsApproval(call)) items.push(this.#pendingItem(call))
    return items
  }

  async #needsApproval({ callId, name, arguments: text }: BatchCall): Promise<boolean> {
    const spec = this.#frozen.tools.get(name)
    const rule = spec?.requiresApproval
    if (spec === undefined || rule === undefined || rule === false) return false
    if (rule === true) return true
    const last = this.#context.state.transcript.at(-1)
    const checked = await checkCall(spec, text, last?.role === 'assistant' ? last.finishReason : 'other')
    // A call that will be refused as it is needs nobody's leave.
    if (!checked.ok) return false
    return this.#decided(async () => {
      const { runId, metadata } = this.#context
      return rule(checked.value, { runId, callId, metadata })
    })
  }

  /** A rule that cannot decide is no leave; one that does not end is left behind when the run is aborted. */
  async #decided(rule: () => Promise<boolean>): Promise<boolean> {
    const { abort, signal } = this.#context
    const { value } = await settle(rule, { abort, timeoutMs: undefined }).catch(() => ({ value: true }))
    signal.throwIfAborted()
    return value ?? true
  }

  #pendingItem({ callId, name: toolName, arguments: text }: BatchCall): PendingItem {
    return { kind: 'approval', callId, toolName, arguments: text, path: [this.#context.runId] }
  }
}
