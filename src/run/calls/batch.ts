import type { ContentFlow, PendingItem } from '../../contracts/result.js'
import type { CheckedArguments } from '../../tools/boundary/arguments.js'
import { plainJson } from '../../util/plain-json.js'
import type { ApprovalContext, ToolSpec } from '../../tools/spec.js'
import type { JsonValue } from '../../util/json.js'
import { settle } from '../../util/abort.js'
import type { RunContext } from '../core/context.js'
import type { Frozen } from '../core/frozen.js'
import type { BackgroundWork } from '../core/background-work.js'
import type { BatchCall } from '../machine/batch-call.js'
import { checkCall, performCall } from './call.js'
import { settleUnknown } from './unknown-outcome.js'

/** How many calls of a batch are under way at once. */
const AT_ONCE = 16

/** Performs a batch of tool calls: what may run together does, in the bounds that the tools set. */
export class ToolBatchExecutor {
  readonly #context: RunContext
  readonly #frozen: Frozen
  readonly #background: () => Promise<BackgroundWork>

  constructor(context: RunContext, frozen: Frozen, background: () => Promise<BackgroundWork>) {
    this.#context = context
    this.#frozen = frozen
    this.#background = background
  }

  /**
   * Runs the calls, or asks for approval where one needs it: then nothing of the batch runs. A call that fails does not
   * stop the others. Rejects only when the run cannot go on; then the others have been aborted and have ended.
   */
  async perform(calls: readonly BatchCall[], checked: ReadonlyMap<string, CheckedArguments>): Promise<void> {
    const items = await this.#needApproval(calls)
    if (items.length > 0) return this.#context.emit('approval_requested', { items })
    for (const group of this.#groups(calls)) await this.#together(group, checked)
  }

  /** Settles calls that had started when the process that ran them ended, by what their tools say (spec H-12, design §3). */
  async settleUnknown(calls: readonly BatchCall[]): Promise<void> {
    for (const call of calls) await settleUnknown(this.#context, this.#frozen, call, this.#indexOf(call))
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

  async #together(calls: readonly BatchCall[], checked: ReadonlyMap<string, CheckedArguments>): Promise<void> {
    const waiting = [...calls]
    const failures: unknown[] = []
    const work = async (): Promise<void> => {
      for (let call = waiting.shift(); call !== undefined && !this.#context.signal.aborted; call = waiting.shift()) {
        try {
          const left = await performCall(this.#context, this.#frozen, call, {
            toolIndex: this.#indexOf(call),
            checked: checked.get(call.callId),
          })
          if (left.length > 0) (await this.#background()).begin(call.callId, left)
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
    if (phase.at !== 'batch' || phase.resumed || phase.calls.some((call) => call.entries > 0)) return []
    const items: PendingItem[] = []
    for (const call of calls) {
      const flows = await this.#flowsInto(call)
      if (flows.length > 0 || (await this.#needsApproval(call))) items.push(await this.#pendingItem(call, flows))
    }
    return items
  }

  /** The untrusted content that a call would carry where a person is to be asked about it. */
  async #flowsInto(call: BatchCall): Promise<readonly ContentFlow[]> {
    const { provenance, tools } = this.#frozen
    const spec = tools.get(call.name)
    if (provenance === null || provenance.options.otherwise === 'deny' || spec === undefined) return []
    const checked = await this.#checked(spec, call)
    if (!checked.ok) return []
    const { flowsInto } = await import('../provenance/flows.js')
    return flowsInto(provenance, this.#context.state.transcript, { spec, argumentsText: checked.text })
  }

  async #needsApproval(call: BatchCall): Promise<boolean> {
    const spec = this.#frozen.tools.get(call.name)
    const rule = spec?.requiresApproval
    if (spec === undefined || rule === undefined || rule === false) return false
    if (rule === true) return true
    const checked = await this.#checked(spec, call)
    // A call that will be refused as it is needs nobody's leave.
    if (!checked.ok) return false
    // A rule that cannot decide is no leave.
    return this.#decided(async () => rule(checked.value, this.#asking(call)), true)
  }

  async #pendingItem(call: BatchCall, flows: readonly ContentFlow[]): Promise<PendingItem> {
    const { callId, name: toolName, arguments: text } = call
    const payload = await this.#preview(call)
    const path = [this.#context.runId]
    const shown = { ...(payload !== undefined && { payload }), ...(flows.length > 0 && { provenance: flows }) }
    return { kind: 'approval', callId, toolName, arguments: text, ...shown, path }
  }

  async #preview(call: BatchCall): Promise<JsonValue | undefined> {
    const spec = this.#frozen.tools.get(call.name)
    const preview = spec?.preview
    if (spec === undefined || preview === undefined) return undefined
    const checked = await this.#checked(spec, call)
    if (!checked.ok) return undefined
    const shown = await this.#decided(async () => preview(checked.value, this.#asking(call)), undefined)
    return shown === undefined ? undefined : plainJson(shown)
  }

  async #checked(spec: ToolSpec, call: BatchCall): Promise<CheckedArguments> {
    const last = this.#context.state.transcript.at(-1)
    return checkCall(spec, call.arguments, last?.role === 'assistant' ? last.finishReason : 'other')
  }

  #asking({ callId }: BatchCall): ApprovalContext {
    const { runId, metadata } = this.#context
    return { runId, callId, metadata }
  }

  /** What a tool's own function says; `otherwise` when it fails. One that does not end is left behind when the run is aborted. */
  async #decided<T>(ask: () => Promise<T>, otherwise: T): Promise<T> {
    const { abort, signal } = this.#context
    const { value } = await settle(ask, { abort, timeoutMs: undefined }).catch(() => ({ value: otherwise }))
    signal.throwIfAborted()
    return value ?? otherwise
  }
}
