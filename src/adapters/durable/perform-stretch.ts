import { setTimeout as delay } from 'node:timers/promises'
import { HarnessError, messageOf } from '#contracts/errors.js'
import type { Answer } from '#core/state/answers.js'
import type { DurableEvent } from '#core/state/events.js'
import type { Harness } from '#harness/harness.js'
import type { HarnessErrorCode } from '#contracts/errors.js'
import type { HarnessResult } from '#contracts/result.js'
import { trusted } from '#contracts/trusted.js'
import type { Trusted } from '#contracts/trusted.js'
import type { JsonObject } from '#util/json.js'
import type { Prompt, RunOptions } from '#harness/options.js'
import type { LogStore, RunLog } from '#core/log/log.js'

/** The next step of a run, as plain JSON: to begin, or to continue after a pause with people's answers. */
export type StretchWork =
  | {
      readonly kind: 'begin'
      readonly runId: string
      readonly prompt: Prompt
      readonly metadata?: JsonObject | undefined
      readonly history?: Exclude<RunOptions['history'], Trusted<unknown> | null>
      /** The host vouches for the history: it was given as `trusted(…)`, which JSON does not keep. */
      readonly isTrusted?: boolean | undefined
    }
  | {
      readonly kind: 'answer'
      readonly runId: string
      readonly answers: readonly Answer[]
      /** Number of the event that paused the run. */
      readonly after: number
    }

/**
 * The outcome of a stretch, as plain JSON. `ended`: the run has ended or waits for people, since event `seq`. `refused`:
 * nothing was done, or the run cannot continue from its log.
 */
export type StretchEnding =
  | { readonly kind: 'ended'; readonly seq: number }
  | { readonly kind: 'refused'; readonly code: HarnessErrorCode; readonly message: string }

export interface StretchMeans<Output> {
  readonly harness: Harness<Output>
  /** The log of the run. Its claims ensure that one process at a time executes the run. */
  readonly log: LogStore
  /** Cancels the run. */
  readonly signal?: AbortSignal | undefined
}

/** The time between two looks at a run that another process owns, in ms. */
const LOOK_MS = 500
/** How often a run whose log could not be reached is tried again, and the time before the first attempt, in ms. */
const STORE_RETRIES = 6
const STORE_RETRY_MS = 1000
/** After an attempt that lasted this long, in ms, earlier failures do not count. */
const LONG_ATTEMPT_MS = 60_000
/** How often a run is recovered without progress: it may be the cause of the crashes. */
const MOST_RECOVERIES = 10
/** How often a run may pause before it has taken its answers: once for each interruption at that moment. */
const ROUNDS = 20

/**
 * Executes a run until its next pause or its end: the only function that a durable engine has to call, any number of times.
 * Work that was done before, in any process, is found in the log and not repeated; calls that were in progress are resolved
 * by their tools' `reconcile` and `onUnknownOutcome`. Waits while another process executes the run. Never rejects.
 */
export async function performStretch<Output>(work: StretchWork, setup: StretchMeans<Output>): Promise<StretchEnding> {
  let failures = 0
  for (let round = 0; round < ROUNDS && setup.signal?.aborted !== true;) {
    const began = Date.now()
    try {
      const end = await executeStretch(work, setup)
      if (typeof end === 'number') return { kind: 'ended', seq: end }
      if (end === 'paused') round += 1
      else await untilFree(work.runId, setup)
    } catch (error) {
      const code = error instanceof HarnessError ? error.code : 'error'
      const message = messageOf(error)
      if (Date.now() - began > LONG_ATTEMPT_MS) failures = 0
      if (code !== 'store_failure' || failures === STORE_RETRIES) return { kind: 'refused', code, message }
      await waitFor(STORE_RETRY_MS * 2 ** failures, setup.signal)
      failures += 1
    }
  }
  return { kind: 'refused', ...stretchRefusal(work.runId, setup.signal) }
}

/**
 * The number of the event that ended a stretch: the run's end, or the first pause after its answers. Null while the run is
 * in progress. Reads the stretch.
 */
export async function endOfStretch(log: RunLog, work: StretchWork): Promise<number | null> {
  return (await stretchProgress(log, work)).end
}

interface Progress {
  readonly end: number | null
  /** How often the run was recovered since its last progress. */
  readonly recoveries: number
}

async function stretchProgress(log: RunLog, work: StretchWork): Promise<Progress> {
  let hasBegun = work.kind === 'begin'
  let recoveries = 0
  for await (const event of log.read(
    { kind: 'run', id: work.runId },
    { after: work.kind === 'begin' ? 0 : work.after },
  )) {
    hasBegun ||= work.kind === 'answer' && isAnswer(event, work.answers)
    if (event.kind === 'run_started' && event.begun === 'recovered') recoveries += 1
    else if (FURTHER.has(event.kind)) recoveries = 0
    if (event.kind === 'run_failed' || (event.kind === 'run_completed' && hasBegun))
      return { end: event.seq, recoveries }
  }
  return { end: null, recoveries }
}

const FURTHER: ReadonlySet<string> = new Set(['model_message', 'tool_call_completed', 'answer_received'])

/**
 * The outcome of a run as of its event `seq`, from the log alone: the result, or the rejection with which the run ended.
 * Claims and changes nothing, even if the run has continued since.
 */
export function endingOf<Output>(
  { harness, log }: StretchMeans<Output>,
  runId: string,
  seq: number,
): Promise<HarnessResult<Output>> {
  return harness.recover(runId, { log: eventsUpTo(log, seq) })
}

/** The log as of event `seq`. It has no claims. */
function eventsUpTo(log: RunLog, seq: number): RunLog {
  return {
    append: ({ id }) =>
      Promise.reject(new HarnessError('invalid_log', `Event ${seq} of run \`${id}\` neither ended nor paused it.`)),
    async *read(ref, options) {
      for await (const event of log.read(ref, options)) {
        if (event.seq > seq) return
        yield event
      }
    },
  }
}

/** The event that ended the stretch; `paused`: the run has not taken its answers; `owned`: another process has it. */
async function executeStretch<Output>(
  work: StretchWork,
  setup: StretchMeans<Output>,
): Promise<number | 'paused' | 'owned'> {
  const { log } = setup
  const earlier = await stretchProgress(log, work)
  if (earlier.end !== null) return earlier.end
  if (earlier.recoveries >= MOST_RECOVERIES) throw hopelessRunError(work.runId)
  try {
    await continueRun(work, setup)
  } catch (error) {
    const end = await endOfStretch(log, work)
    if (end !== null) return end
    if (isOwnedElsewhere(error)) return 'owned'
    throw error
  }
  const end = await endOfStretch(log, work)
  if (end === null && work.kind === 'begin') throw lostRunError(work.runId)
  return end ?? 'paused'
}

async function continueRun<Output>(work: StretchWork, { harness, log, signal }: StretchMeans<Output>): Promise<void> {
  const { runId } = work
  const known = await log.inspect({ kind: 'run', id: runId })
  if (known === null) {
    if (work.kind === 'answer') throw new HarnessError('run_not_found', `The log has no run \`${runId}\`.`)
    const { prompt, metadata, isTrusted } = work
    const history = work.history && isTrusted === true ? trusted(work.history) : work.history
    await harness.run(prompt, { runId, metadata, history, log, signal })
  } else if (work.kind === 'answer' && known.status === 'paused') {
    await harness.resumeRun(runId, work.answers, { log, signal })
  } else {
    await harness.recover(runId, { log, signal })
  }
}

/** The run is not begun again: its calls may have had effects. */
function lostRunError(runId: string): HarnessError {
  return new HarnessError('run_not_found', `Run \`${runId}\` has ended, and its log is gone.`)
}

/** The run is left as it is: `harness.recover` tries again. */
function hopelessRunError(runId: string): HarnessError {
  const message = `Run \`${runId}\` was interrupted ${MOST_RECOVERIES} times without progress: it is not tried again.`
  return new HarnessError('error', message)
}

function isAnswer(event: DurableEvent, answers: readonly Answer[]): boolean {
  return event.kind === 'answer_received' && answers.some(({ callId }) => callId === event.callId)
}

function isOwnedElsewhere(error: unknown): boolean {
  return error instanceof HarnessError && (error.code === 'run_owned' || error.code === 'run_exists')
}

/** Waits while another process executes the run. */
async function untilFree<Output>(runId: string, { log, signal }: StretchMeans<Output>): Promise<void> {
  do await waitFor(LOOK_MS, signal)
  while (signal?.aborted !== true && (await log.inspect({ kind: 'run', id: runId }))?.status === 'running')
}

async function waitFor(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined)
}

function stretchRefusal(runId: string, signal: AbortSignal | undefined): { code: HarnessErrorCode; message: string } {
  if (signal?.aborted === true) return { code: 'cancelled', message: 'The run was cancelled.' }
  return {
    code: 'error',
    message: `Run \`${runId}\` was interrupted ${ROUNDS} times before it could take its answers.`,
  }
}
