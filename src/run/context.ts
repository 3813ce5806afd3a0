import { HarnessError, messageOf } from '../errors.js'
import { NO_USAGE } from '../report.js'
import type { RunReport, StopReason } from '../report.js'
import type { CheckedArguments } from '../tools/arguments.js'
import type { Clock } from '../util/clock.js'
import type { JsonObject, JsonValue } from '../util/json.js'
import type { DurableEvent, DurablePayloads, EphemeralEvent, EphemeralPayloads, EventBase } from './events.js'
import type { RunAbort } from './abort.js'
import type { HookSet } from './hooks.js'
import type { RunLog } from './log.js'
import type { EventQueue } from './queue.js'
import { reportOf } from './result.js'
import { apply, openState } from './state.js'
import type { RunParent, RunState } from './state.js'

/** What a run is given at its start, alive or not. */
export interface RunSurroundings {
  readonly runId: string
  readonly parent: RunParent | null
  readonly metadata: JsonObject
  readonly log: RunLog
  readonly clock: Clock
  readonly hooks: HookSet
  readonly queue: EventQueue
  readonly abort: RunAbort
  /** The state that the run goes on from; none for a fresh run. */
  readonly state?: RunState
  /** Raw replies from before a pause. */
  readonly responses?: readonly unknown[]
}

/** One run: its state, log, clock, ids and abort signal. The only one that emits. */
export class RunContext {
  readonly runId: string
  readonly parent: RunParent | null
  readonly metadata: JsonObject
  readonly clock: Clock
  readonly hooks: HookSet
  readonly abort: RunAbort
  /** The provider's raw replies: kept beside the state, since no event carries them. */
  readonly responses: unknown[]
  /** The checked arguments of the batch in hand, by call id: made when the reply came, used when its calls run. */
  checked: ReadonlyMap<string, CheckedArguments> = new Map()
  /** The `run_end` hooks have been asked. */
  endTold = false
  readonly #log: RunLog
  readonly #queue: EventQueue
  #state: RunState | null
  #lastSeq: number
  /** Events that go to the log together, and the promise of their being kept. */
  #gathering: { readonly events: DurableEvent[]; readonly kept: Promise<void> } | null = null
  #lastAppend: Promise<void> = Promise.resolve()
  #storeFailure: HarnessError | null = null
  /** The last event of the run has been emitted: what a model or a tool that was left behind still tells is not heard. */
  #isOver = false

  constructor(surroundings: RunSurroundings) {
    this.runId = surroundings.runId
    this.parent = surroundings.parent
    this.metadata = surroundings.metadata
    this.clock = surroundings.clock
    this.hooks = surroundings.hooks
    this.abort = surroundings.abort
    this.responses = [...(surroundings.responses ?? [])]
    this.#log = surroundings.log
    this.#queue = surroundings.queue
    this.#state = surroundings.state ?? null
    this.#lastSeq = surroundings.state?.seq ?? 0
  }

  get state(): RunState {
    if (this.#state === null) throw new RangeError(`Expected run \`${this.runId}\` to have begun.`)
    return this.#state
  }

  get hasBegun(): boolean {
    return this.#state !== null
  }

  /**
   * Keeps an event, then changes the state by it, then tells it. Resolves when all three are done and the reader has
   * room; events emitted while an append is under way are kept together. Rejects with `store_failure` when the log
   * cannot keep it, and from then on for every event.
   */
  emit<Kind extends keyof DurablePayloads>(kind: Kind, payload: DurablePayloads[Kind]): Promise<void> {
    if (this.#storeFailure !== null) return Promise.reject(this.#storeFailure)
    if (this.#isOver) return Promise.reject(new RangeError(`Run \`${this.runId}\` is over: it tells nothing more.`))
    this.#lastSeq += 1
    const event = { kind, ...this.#base(this.#lastSeq, true), ...payload } as DurableEvent
    if (event.kind === 'run_completed') keepShort(event, answerIn(this.state))
    this.#isOver = event.kind === 'run_completed' || event.kind === 'run_failed'
    this.#gathering ??= this.#gather()
    this.#gathering.events.push(event)
    return this.#gathering.kept
  }

  /** The end of a run in an error. What the log cannot keep is told all the same: a stream always has its end. */
  async emitFailure(error: HarnessError, stopReason: StopReason): Promise<void> {
    const { code, name: errorType, message } = error
    const payload = { stopReason, code, errorType, message, usage: this.#state?.usage ?? NO_USAGE }
    try {
      if (!this.hasBegun) throw error
      await this.emit('run_failed', payload)
    } catch {
      this.tell('run_failed', payload)
    }
  }

  /** Tells listeners something that is never stored. */
  tell<Kind extends keyof EphemeralPayloads>(kind: Kind, payload: EphemeralPayloads[Kind]): void {
    if (this.#isOver && kind !== 'run_failed') return
    void this.#queue.push({ kind, ...this.#base(this.#state?.seq ?? 0, false), ...payload } as EphemeralEvent)
  }

  get signal(): AbortSignal {
    return this.abort.signal
  }

  /** Tells of a hook that failed and was passed over. */
  readonly hookFailed = (hookEvent: string, message: string): Promise<void> =>
    this.emit('hook_failed', { hookEvent, message })

  /** The fields that every hook gets. */
  hookBase<Event extends string>(event: Event): { event: Event; runId: string; metadata: JsonObject } {
    return { event, runId: this.runId, metadata: this.metadata }
  }

  /** What the run had done when it failed; nothing when it had not begun. */
  report(stopReason: StopReason): RunReport | undefined {
    if (this.#state === null) return undefined
    return reportOf(this.#state, stopReason, this.responses)
  }

  #base(seq: number, durable: boolean): EventBase {
    const { runId, parent } = this
    return {
      runId,
      seq,
      at: this.clock.iso(),
      durable,
      parentRunId: parent?.runId ?? null,
      parentToolCallId: parent?.callId ?? null,
      agentName: parent?.agentName ?? null,
    }
  }

  #gather(): { readonly events: DurableEvent[]; readonly kept: Promise<void> } {
    const events: DurableEvent[] = []
    const kept = this.#lastAppend.then(() => {
      this.#gathering = null
      return this.#keep(events)
    })
    // The next append waits for this one, however it ends.
    this.#lastAppend = kept.then(undefined, () => undefined)
    return { events, kept }
  }

  async #keep(events: readonly DurableEvent[]): Promise<void> {
    if (this.#storeFailure !== null) throw this.#storeFailure
    try {
      await this.#log.append(this.runId, events)
    } catch (cause) {
      this.#storeFailure = storeFailure(this.runId, cause)
      // What is under way is stopped now, and nothing more begins.
      this.abort.abort(this.#storeFailure)
      throw this.#storeFailure
    }
    let room: Promise<void> | undefined
    for (const event of events) {
      if (this.#state !== null) apply(this.#state, event)
      else if (event.kind === 'run_started') this.#state = openState(event)
      room = this.#queue.push(event) ?? room
    }
    if (room !== undefined) await room
  }
}

function storeFailure(runId: string, cause: unknown): HarnessError {
  if (cause instanceof HarnessError) return cause
  return new HarnessError('store_failure', `The log could not keep an event of run \`${runId}\`: ${messageOf(cause)}`, {
    cause,
  })
}

/** The answer as JSON: what the caller's schema made of it need not be any. */
function answerIn({ phase }: RunState): JsonValue | undefined {
  return phase.at === 'answered' && phase.resolution.kind === 'final' ? phase.resolution.output : undefined
}

/** As JSON a result is told in short: its transcript, records and state are in the events before it. */
function keepShort(event: DurableEvent & { kind: 'run_completed' }, answer: JsonValue | undefined): void {
  const { runId, text, output, stopReason, usage, pending } = event.result
  const toJSON = () => ({ ...event, result: { runId, text, output: answer ?? output, stopReason, usage, pending } })
  Object.defineProperty(event, 'toJSON', { value: toJSON, enumerable: false })
}
