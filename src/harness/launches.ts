import type { ForkOptions, ResumeOptions } from './options.js'
import type { Launch } from './runs.js'
import type { ResumeState } from '../contracts/result.js'
import { loadPaused, loadRun, loadStored } from '../run/core/load.js'
import type { LoadedRun } from '../run/core/load.js'
import type { GoOnOpening } from '../run/core/plan.js'
import type { SigningKey } from '../run/core/signature.js'
import type { RunLog } from '../run/log/log.js'
import type { Answer } from '../run/machine/answers.js'
import type { RunEvent } from '../run/machine/events.js'
import { forkOpening } from '../run/replay/fork.js'
import { recordedEvents } from '../run/replay/replay.js'
import { matchAnswers, readAnswers } from '../run/resume/answer-check.js'
import { readHistory } from '../run/resume/history.js'
import { resolveHistory } from '../run/resume/read-log.js'
import { checkPaused, pendingOf, readPaused } from '../run/resume/stored-state.js'
import type { InputMessage } from '../run/stream/input.js'
import type { JsonObject } from '../util/json.js'

/** Where runs and their states come from. */
interface Source {
  readonly log: RunLog
  readonly signingKey: SigningKey | null
}

/** A new run. Throws `invalid_state` for a history that is none. */
export function freshLaunch(
  { prompt, history, metadata }: { prompt: InputMessage; history: unknown; metadata: JsonObject },
  { log, signingKey }: Source,
): Launch {
  const find = readHistory(history, signingKey)
  return { opening: { kind: 'fresh', prompt, history: () => find(log) }, metadata }
}

/** A paused run with people's answers. Throws `invalid_state` and `invalid_answer`. */
export function resumedLaunch(
  runIdOrState: string | ResumeState,
  { answers: given, options }: { readonly answers: readonly Answer[]; readonly options: ResumeOptions },
  { log, signingKey }: Source,
): Launch {
  const answers = readAnswers(given)
  if (typeof runIdOrState !== 'string') {
    const stored = readPaused(runIdOrState, signingKey)
    matchAnswers(answers, pendingOf(stored.state))
    return continuedLaunch({ begun: 'resumed', answers, load: () => loadStored(log, stored) }, options)
  }
  const load = (): Promise<LoadedRun | null> =>
    loadPaused(log, runIdOrState, (state) => {
      checkPaused(state)
      matchAnswers(answers, pendingOf(state))
    })
  return continuedLaunch({ begun: 'resumed', answers, load }, options)
}

/** A run that the log has. */
export function storedLaunch(
  runId: string,
  { begun, options }: { readonly begun: 'recovered' | 'retried'; readonly options: ResumeOptions },
  { log }: Source,
): Launch {
  return continuedLaunch({ begun, answers: [], load: () => loadRun(log, runId) }, options)
}

/** A new run that continues a recorded one. */
export function forkLaunch(
  events: Iterable<RunEvent> | AsyncIterable<RunEvent>,
  point: { readonly afterTurn: number; readonly prompt: InputMessage | null; readonly runId: string },
  { log, options }: { readonly log: RunLog; readonly options: ForkOptions },
): Launch {
  const { effects, mocks } = options
  const metadata = options.metadata ?? null
  const fork = forkOpening(recordedEvents(events), { ...point, resolve: (start) => resolveHistory(log, start) })
  const changed = { ...(effects !== undefined && { effects }), ...(mocks !== undefined && { mocks }) }
  return { opening: { ...fork, metadata }, metadata: metadata ?? {}, effects: changed }
}

function continuedLaunch(
  found: Pick<GoOnOpening, 'begun' | 'answers' | 'load'>,
  { configPolicy = 'compatible', metadata: given }: ResumeOptions,
): Launch {
  const metadata = given ?? null
  const opening = { kind: 'go_on', ...found, configPolicy, metadata, otherwise: null } as const
  return { opening, metadata: metadata ?? {} }
}
