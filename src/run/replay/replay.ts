import { HarnessError, messageOf } from '#contracts/errors.js'
import type { ToolEntry, UserEntry } from '#contracts/entry.js'
import type { Model, ModelCapabilities } from '#core/model-session.js'
import type { HarnessResult } from '#contracts/result.js'
import type { OpenHistory, Opening } from '#core/loop/run-plan.js'
import type { RunContext } from '#core/loop/run-context.js'
import { REPLAYED_KINDS } from '#core/state/events.js'
import type { DurableEvent, RunEvent } from '#core/state/events.js'
import type { InputPort } from '#core/stream/input.js'
import type { LoadedRun } from '#core/loop/run-plan.js'
import type { RunLog } from '#core/log/log.js'
import { toHarnessError } from '#core/loop/run-failure.js'
import { Recording, recordedFailure } from '#core/loop/recording.js'
import type { AllowedDifferences } from '#core/loop/recording.js'
import { checkVersion } from '../resume/read-log.js'
import type { ResolveHistory } from '../resume/read-log.js'
import { readState } from '../resume/stored-state.js'

type Started = DurableEvent & { kind: 'run_started' }
type Request = DurableEvent & { kind: 'model_request_started' }

/** A stretch of a recorded run: from the event with which a process began it to its end in that process. */
export interface Stretch {
  readonly opening: Opening
  readonly started: Started
  readonly recording: Recording
  readonly model: Model
  /** Stores nothing: the events are in a log already. */
  readonly log: RunLog
  /** The recorded steering messages. */
  readonly input: InputPort
}

/** A stretch that is run again. */
export interface ReplayedStretch<Output> {
  readonly context: RunContext
  readonly outcome: Promise<HarnessResult<Output>>
}

/**
 * Runs a recorded run again: no model is asked and no tool is run. Each event that the loop emits must equal the recorded
 * one; the first difference rejects with `replay_mismatch`. Otherwise the outcome is that of the recorded run, including its
 * error.
 */
export async function replayRun<Output>(
  events: readonly DurableEvent[],
  run: (stretch: Stretch) => ReplayedStretch<Output>,
  { resolve, allowed }: { readonly resolve: ResolveHistory; readonly allowed?: AllowedDifferences },
): Promise<HarnessResult<Output>> {
  const recording = new Recording(events, allowed)
  let context: RunContext | null = null
  for (;;) {
    const started = recording.next
    if (started?.kind !== 'run_started') throw interrupted(recording.last)
    const before: RunContext | null = context
    const opening = openingOf(started, { recording, before, resolve })
    const model = recordedModel(started, events)
    const stretch = run({ opening, started, recording, model, log: noLog, input: recordedInput(recording, events) })
    context = stretch.context
    const [outcome] = await Promise.allSettled([stretch.outcome])
    if (recording.mismatch !== null) throw recording.mismatch
    const isPaused = outcome.status === 'fulfilled' && outcome.value.pending.length > 0
    const cancelled = isPaused ? takeCancellation(recording, context) : null
    if (cancelled !== null && recording.next === undefined) throw cancelled
    const { last, next } = recording
    // The history was not found.
    if (next === started && outcome.status === 'rejected') throw outcome.reason
    if (next !== undefined && next.kind !== 'run_started') throw recording.differs(next, { kind: 'nothing more' }, '')
    if (next !== undefined) continue
    if (last?.kind !== 'run_completed' && last?.kind !== 'run_failed') throw interrupted(last)
    if (outcome.status === 'rejected') throw outcome.reason
    return outcome.value
  }
}

/** The error of a run that was cancelled while it was paused; null for any other. */
function takeCancellation(recording: Recording, context: RunContext): HarnessError | null {
  const { next } = recording
  if (next?.kind !== 'run_failed') return null
  context.replay(recording.take())
  return toHarnessError(recordedFailure(next), context.report(next.stopReason))
}

/** The durable events of the first run; those of its child runs are not needed. */
export async function recordedEvents(
  log: Iterable<RunEvent> | AsyncIterable<RunEvent>,
): Promise<readonly DurableEvent[]> {
  const events: DurableEvent[] = []
  try {
    for await (const event of log) {
      if (!event.durable || event.runId !== (events[0]?.runId ?? event.runId)) continue
      checkVersion(event)
      // It began later, by the same events as any run.
      if (event.kind !== 'run_queued') events.push(event)
    }
  } catch (cause) {
    if (cause instanceof HarnessError) throw cause
    throw new HarnessError('invalid_log', `The recorded events cannot be read: ${messageOf(cause)}`, { cause })
  }
  if (events[0] === undefined) throw new HarnessError('invalid_log', 'The log has no events.')
  return events
}

/** Steering as it was recorded: the messages of the request that comes next. */
function recordedInput(recording: Recording, events: readonly DurableEvent[]): InputPort {
  let takenBy: unknown = null
  return {
    get waiting() {
      return requestAhead(recording, events)?.requestKind === 'steering' ? 1 : 0
    },
    take: () => {
      const request = requestAhead(recording, events)
      if (request === takenBy) return []
      takenBy = request
      return request?.entries.filter(isSteering).map(({ content }) => content) ?? []
    },
    close: () => [],
    send: () => Promise.resolve(),
  }
}

/** The request that comes next: messages are taken before its correction is reported, and before events of others. */
function requestAhead({ next }: Recording, events: readonly DurableEvent[]): Request | undefined {
  for (let index = next === undefined ? Infinity : next.seq - Number(events[0]?.seq); index < events.length; index++) {
    const event = events[index]
    if (event?.kind === 'model_request_started') return event
    if (event?.kind !== 'model_retry' && event !== undefined && REPLAYED_KINDS.has(event.kind)) return undefined
  }
  return undefined
}

/** A message of a person that a run took, and not a report or a notice. */
function isSteering(entry: UserEntry | ToolEntry): entry is UserEntry {
  return entry.role === 'user' && entry.notice !== true && entry.source === undefined
}

/** A log that stores nothing, for a run that is in a log already. */
const noLog: RunLog = {
  append: () => Promise.resolve(),
  read: async function* () {
    // Empty.
  },
}

function openingOf(
  started: Started,
  { recording, before, resolve }: { recording: Recording; before: RunContext | null; resolve: ResolveHistory },
): Opening {
  const { begun, prompt } = started
  if (begun === 'fresh') {
    const history = async (): Promise<OpenHistory> => ({
      start: startHistory(started),
      conversation: await resolve(started),
    })
    return { kind: 'fresh', prompt: prompt ?? '', history }
  }
  const found: LoadedRun =
    before === null
      ? { ...readState(started.state, `The log of run \`${started.runId}\``, null), last: null, isLogged: false }
      : // It has begun, whatever it was to continue with.
        { state: before.state, responses: [], last: started, isLogged: true }
  return {
    kind: 'go_on',
    begun,
    load: () => Promise.resolve(found),
    answers: recording.answersAhead,
    configPolicy: 'any',
    metadata: started.metadata,
    otherwise: null,
  }
}

function startHistory({ history, view }: Started): OpenHistory['start'] {
  return { history, ...(view && { view }) }
}

/** The model of the recorded run, as far as it can be known without a request. */
function recordedModel({ provider, model, rules }: Started, events: readonly DurableEvent[]): Model {
  const settled = events.find((event) => event.kind === 'model_message' && event.finalizedOutputMode !== null)
  const mode = settled?.kind === 'model_message' ? settled.finalizedOutputMode : null
  const capabilities: ModelCapabilities = {
    supportsTools: true,
    supportsJsonSchemaOutput: true,
    defaultStructuredOutputMode: rules.answersByTool ? 'tool' : mode === 'native' ? 'native' : 'prompted',
  }
  const turn = (): Promise<never> => Promise.reject(new RangeError('A recorded run does not ask its model.'))
  return { provider, id: model, capabilities, openSession: () => ({ turn }) }
}

function interrupted(last: DurableEvent | null): HarnessError {
  const where = last === null ? 'It holds no run' : `Run \`${last.runId}\` was interrupted after event ${last.seq}`
  return new HarnessError('invalid_log', `The log has no ending. ${where}.`)
}
