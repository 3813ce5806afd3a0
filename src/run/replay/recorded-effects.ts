import { textOf } from '#contracts/entry.js'
import type { ConfigDigest } from '#core/state/config-digest.js'
import type { RunContext } from '#core/loop/run-context.js'
import type { Effects, Reply, Until } from '#core/loop/effects.js'
import { REPLAYED_KINDS, REPORTED } from '#core/state/events.js'
import type { DurableEvent } from '#core/state/events.js'
import type { RunSetup } from '#core/loop/run-plan.js'
import type { BatchCall } from '#core/state/batch-call.js'
import { RecordingCut, recordedFailure } from '#core/loop/recording.js'
import type { Recording } from '#core/loop/recording.js'
import { isAskedByOther, otherRunIds } from '#core/state/background-state.js'

/** Events of tools and people in a batch, besides those that are taken as they are. */
const OF_BATCHES: ReadonlySet<DurableEvent['kind']> = new Set([
  'call_prepared',
  'tool_call_started',
  'tool_call_completed',
  'tool_call_interrupted',
  'approval_requested',
])

function isOfBatch(event: DurableEvent | undefined): event is DurableEvent {
  return event !== undefined && (OF_BATCHES.has(event.kind) || !REPLAYED_KINDS.has(event.kind))
}

const STARTS: ReadonlySet<DurableEvent['kind']> = new Set(['call_prepared', 'tool_call_started'])

/** True for the event of another call: a batch may be executed in parts. */
function isOfOther(event: DurableEvent, callIds: ReadonlySet<string>): boolean {
  return 'callId' in event && event.callId !== null && !callIds.has(event.callId)
}

/** Effects from a recording: no model is asked, and no tool is run. */
export class RecordedEffects implements Effects {
  readonly #context: RunContext
  readonly #setup: RunSetup
  readonly #recording: Recording

  constructor(context: RunContext, setup: RunSetup, recording: Recording) {
    this.#context = context
    this.#setup = setup
    this.#recording = recording
  }

  /** The tools of servers are taken from the recording, which also says which hosted tools its policies left out. */
  configure(): Promise<ConfigDigest> {
    this.#context.replayGiven()
    const { config: now, plan, tools: specs } = this.#setup
    const { next } = this.#recording
    const recorded = (next?.kind === 'model_request_started' ? next.config : undefined) ?? this.#context.state.config
    const isOffered = ([name]: [string, string]): boolean =>
      specs.get(name)?.hosted === undefined || recorded === null || Object.hasOwn(recorded.tools, name)
    const config = { ...now, tools: Object.fromEntries(Object.entries(now.tools).filter(isOffered)) }
    if (!plan.offers.canChange || recorded === null) return Promise.resolve(config)
    const { instructions, tools } = recorded
    return Promise.resolve({ ...config, instructions, tools: { ...tools, ...config.tools } })
  }

  /** The notices are in the recorded request. */
  hostNotices(): Promise<null> {
    return Promise.resolve(null)
  }

  async ask(): Promise<Reply> {
    this.#context.replayGiven()
    const next = this.#expected('model_message')
    const {
      finalizedOutputMode,
      entry,
      resolution,
      nativeFinishReason,
      responseId,
      responseModel,
      cost,
      resolvedCalls,
      blocked,
    } = next
    const reply = { finalizedOutputMode, entry, resolution, nativeFinishReason, responseId, responseModel }
    const message = {
      ...reply,
      ...(cost !== undefined && { cost }),
      ...(resolvedCalls && { resolvedCalls }),
      ...(blocked !== undefined && { blocked }),
    }
    const isAnswer = resolution.kind === 'final' && resolution.output !== undefined
    return { message, value: isAnswer ? await this.#setup.plan.answer.read(resolution.output) : textOf(entry.parts) }
  }

  async runTools(calls: readonly BatchCall[]): Promise<void> {
    const ids = new Set(calls.map(({ callId }) => callId))
    this.#replayBatch((event) => isOfOther(event, ids))
  }

  async refuseCalls(): Promise<void> {
    this.#replayBatch()
  }

  async settleUnknown(calls: readonly BatchCall[]): Promise<void> {
    const ids = new Set(calls.map(({ callId }) => callId))
    // Afterwards, some of them are started again.
    this.#replayBatch((event) => STARTS.has(event.kind) || isOfOther(event, ids))
  }

  /** The outcome is in the recording. */
  takeReports(until: Until): Promise<boolean> {
    const { seq } = this.#context.state
    this.#context.replayGiven()
    for (let next = this.#recording.next; isAskedByOther(next); next = this.#recording.next) {
      this.#context.replay(this.#recording.take())
      this.#context.replayGiven()
    }
    const hasTold = this.#context.state.seq > seq
    if (until === 'next' && !hasTold) this.#expected(REPORTED)
    return Promise.resolve(hasTold)
  }

  endOthers(): Promise<void> {
    this.#context.replayGiven()
    if (otherRunIds(this.#context.state).length > 0) this.#expected(REPORTED)
    return Promise.resolve()
  }

  stop(): Promise<void> {
    return Promise.resolve()
  }

  /** Replays the events of a batch, up to one that belongs to other calls. */
  #replayBatch(isOther: (event: DurableEvent) => boolean = () => false): void {
    let count = 0
    for (let next = this.#recording.next; isOfBatch(next) && !isOther(next); next = this.#recording.next) {
      this.#context.replay(this.#recording.take())
      count += 1
    }
    if (count === 0) this.#expected('tool_call_started')
  }

  #expected<Kind extends DurableEvent['kind']>(kind: Kind): DurableEvent & { kind: Kind } {
    const { next } = this.#recording
    if (next?.kind === kind) return next as DurableEvent & { kind: Kind }
    if (next === undefined || next.kind === 'run_started') throw new RecordingCut()
    if (next.kind === 'run_failed') throw recordedFailure(next)
    throw this.#recording.differs(next, { kind }, '')
  }
}
