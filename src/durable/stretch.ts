import { setTimeout as delay } from 'node:timers/promises'
import { HarnessError } from '../index.js'
import type {
  Answer,
  DurableEvent,
  Harness,
  HarnessErrorCode,
  HarnessResult,
  History,
  JsonObject,
  Prompt,
  LogStore,
  RunLog,
} from '../index.js'

/** What a run is to do next, as plain JSON: to begin, or to go on behind a pause with people's answers. */
export type StretchWork =
  | {
      readonly kind: 'begin'
      readonly runId: string
      readonly prompt: Prompt
      readonly metadata?: JsonObject | undefined
      readonly history?: History | undefined
    }
  | {
      readonly kind: 'answer'
      readonly runId: string
      readonly answers: readonly Answer[]
      /** Number of the event that paused the run. */
      readonly after: number
    }

/**
 * What came of a stretch, as plain JSON. `ended`: the run has ended or waits for people, and `seq` is the event that says
 * so. `refused`: nothing was done, or the run cannot go on from where its log stands.
 */
export type StretchEnding =
  | { readonly kind: 'ended'; readonly seq: number }
  | { readonly kind: 'refused'; readonly code: HarnessErrorCode; readonly message: string }

export interface StretchMeans<Output> {
  readonly harness: Harness<Output>
  /** Where the run is kept, and by whose claims only one process at a time has it in hand. */
  readonly log: LogStore
  /** Cancels the run. */
  readonly signal?: AbortSignal | undefined
}

/** How long is waited between two looks at a run that is another's, in ms. */
const LOOK_MS = 500
/** How often a run whose log could not be reached is tried again, and how long is waited before the first time, in ms. */
const STORE_RETRIES = 6
const STORE_RETRY_MS = 1000
/** An attempt that lasted so long, in ms, makes the earlier failures forgotten. */
const LONG_ATTEMPT_MS = 60_000
/** How often a run is recovered without getting further: its process may end because of it. */
const MOST_RECOVERIES = 10
/** How often a run may pause before it has taken its answers: once for each time that it was interrupted just then. */
const ROUNDS = 20

/**
 * Takes a run to its next pause or to its end: the one function that a durable engine has to call, as often as it likes.
 * What was done before, here or in another process, is found in the log and not done again; calls that were under way are
 * settled by their tools' `reconcile` and `onUnknownOutcome`. While the run is in another's hands it waits, until that
 * one has ended it or is gone. Never rejects.
 */
export async function performStretch<Output>(work: StretchWork, means: StretchMeans<Output>): Promise<StretchEnding> {
  let failures = 0
  for (let round = 0; round < ROUNDS && means.signal?.aborted !== true;) {
    const began = Date.now()
    try {
      const came = await carryOn(work, means)
      if (typeof came === 'number') return { kind: 'ended', seq: came }
      if (came === 'paused') round += 1
      else await untilFree(work.runId, means)
    } catch (error) {
      const { code, message } = error instanceof HarnessError ? error : unexpected(error)
      if (Date.now() - began > LONG_ATTEMPT_MS) failures = 0
      if (code !== 'store_failure' || failures === STORE_RETRIES) return { kind: 'refused', code, message }
      await wait(STORE_RETRY_MS * 2 ** failures, means.signal)
      failures += 1
    }
  }
  return { kind: 'refused', ...refusal(work.runId, means.signal) }
}

/**
 * The number of the event that ended a stretch: the run's end, or the first pause behind its answers. Null while the run
 * goes on. Reads the stretch.
 */
export async function endOfStretch(log: RunLog, work: StretchWork): Promise<number | null> {
  return (await progressOf(log, work)).end
}

interface Progress {
  readonly end: number | null
  /** How often the run was recovered since it last got further. */
  readonly recoveries: number
}

async function progressOf(log: RunLog, work: StretchWork): Promise<Progress> {
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
 * What a run came to with its event number `seq`, from the log alone: the result, typed and whole, or the rejection that
 * the run ended in. Needs no claim and changes nothing, also when the run has gone on since.
 */
export function endingOf<Output>(
  { harness, log }: Pick<StretchMeans<Output>, 'harness' | 'log'>,
  runId: string,
  seq: number,
): Promise<HarnessResult<Output>> {
  return harness.recover(runId, { log: upTo(log, seq) })
}

/** The log as it stood behind event `seq`. It takes no claims: the past is nobody's. */
function upTo(log: RunLog, seq: number): RunLog {
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

/** Where the stretch has ended; `paused`: the run has paused, and not taken its answers; `owned`: it is another's. */
async function carryOn<Output>(work: StretchWork, means: StretchMeans<Output>): Promise<number | 'paused' | 'owned'> {
  const { log } = means
  const earlier = await progressOf(log, work)
  if (earlier.end !== null) return earlier.end
  if (earlier.recoveries >= MOST_RECOVERIES) throw hopeless(work.runId)
  try {
    await goOn(work, means)
  } catch (error) {
    const end = await endOfStretch(log, work)
    if (end !== null) return end
    if (isOwnedElsewhere(error)) return 'owned'
    throw error
  }
  const end = await endOfStretch(log, work)
  if (end === null && work.kind === 'begin') throw lost(work.runId)
  return end ?? 'paused'
}

async function goOn<Output>(work: StretchWork, { harness, log, signal }: StretchMeans<Output>): Promise<void> {
  const { runId } = work
  const given = { log, ...(signal !== undefined && { signal }) }
  const known = await log.inspect({ kind: 'run', id: runId })
  if (known === null) {
    if (work.kind === 'answer') throw new HarnessError('run_not_found', `The log knows no run \`${runId}\`.`)
    const { prompt, metadata, history } = work
    const options = { ...(metadata !== undefined && { metadata }), ...(history !== undefined && { history }) }
    await harness.run(prompt, { runId, ...options, ...given })
  } else if (work.kind === 'answer' && known.status === 'paused') {
    await harness.resume(runId, work.answers, given)
  } else {
    await harness.recover(runId, given)
  }
}

/** It is not begun again: its calls may have had their effects. */
function lost(runId: string): HarnessError {
  return new HarnessError('run_not_found', `Run \`${runId}\` has ended, and its log does not say how any more.`)
}

/** It stays as it is: `harness.recover` tries it once more. */
function hopeless(runId: string): HarnessError {
  const message = `Run \`${runId}\` was interrupted ${MOST_RECOVERIES} times without getting further: it is not tried again.`
  return new HarnessError('error', message)
}

function isAnswer(event: DurableEvent, answers: readonly Answer[]): boolean {
  return event.kind === 'answer_received' && answers.some(({ callId }) => callId === event.callId)
}

function isOwnedElsewhere(error: unknown): boolean {
  return error instanceof HarnessError && (error.code === 'run_owned' || error.code === 'run_exists')
}

/** Waits while somebody has the run in hand. */
async function untilFree<Output>(runId: string, { log, signal }: StretchMeans<Output>): Promise<void> {
  do await wait(LOOK_MS, signal)
  while (signal?.aborted !== true && (await log.inspect({ kind: 'run', id: runId }))?.status === 'running')
}

async function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await delay(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined)
}

function refusal(runId: string, signal: AbortSignal | undefined): { code: HarnessErrorCode; message: string } {
  if (signal?.aborted === true) return { code: 'cancelled', message: 'The run was cancelled.' }
  return {
    code: 'error',
    message: `Run \`${runId}\` was interrupted ${ROUNDS} times before it could take its answers.`,
  }
}

function unexpected(error: unknown): { code: HarnessErrorCode; message: string } {
  return { code: 'error', message: error instanceof Error ? error.message : String(error) }
}
