import type { Parsed } from './option-shapes.js'
import type { ForkOptions, ResumeOptions, RunOptions } from './options.js'
import type { Resumed } from './run-checks.js'
import type { Launch } from './runs.js'
import { loadPaused, loadRetried, loadRun, loadStored } from '../run/core/load.js'
import type { LoadedRun } from '../run/core/load.js'
import type { FreshOpening, GoOnOpening } from '../run/core/plan.js'
import type { RunLog } from '../run/log/log.js'
import type { RunEvent } from '../run/machine/events.js'
import type { RunState } from '../run/machine/state.js'
import { forkOpening } from '../run/replay/fork.js'
import { recordedEvents } from '../run/replay/replay.js'
import { matchAnswers } from '../run/resume/given-answers.js'
import type { GivenHistory } from '../run/resume/given-history.js'
import { findHistory } from '../run/resume/history.js'
import { resolveHistory } from '../run/resume/read-log.js'
import { checkPaused, pendingOf } from '../run/resume/stored-state.js'
import type { InputMessage } from '../run/stream/input.js'
import type { JsonObject } from '../util/json.js'

/** A run with a prompt. */
export interface PromptedRun {
  readonly runId: string
  readonly prompt: InputMessage
  readonly history: GivenHistory
  readonly metadata: JsonObject | null
  /** What to do if the log has the run. */
  readonly ifExists: NonNullable<RunOptions['ifExists']>
}

/** A new run, or the one that the log has. */
export function promptedLaunch({ runId, prompt, history, ifExists, ...given }: PromptedRun, log: RunLog): Launch {
  const fresh: FreshOpening = { kind: 'fresh', prompt, history: () => findHistory(history, log) }
  const metadata = given.metadata ?? {}
  if (ifExists === 'fail') return { opening: fresh, metadata }
  const begun = ifExists === 'retry' ? 'retried' : 'recovered'
  const otherwise = (): Promise<FreshOpening> => Promise.resolve(fresh)
  const stored = { begun, answers: [], load: loadStoredRun(log, runId, begun) } as const
  return {
    opening: { kind: 'go_on', ...stored, configPolicy: 'compatible', metadata: given.metadata, otherwise },
    metadata,
  }
}

/** A paused run with people's answers. */
export function resumedLaunch(
  { runId, stored, answers }: Resumed,
  options: Parsed<ResumeOptions>,
  log: RunLog,
): Launch {
  const check = (state: RunState): void => {
    checkPaused(state)
    matchAnswers(answers, pendingOf(state))
  }
  const load = (): Promise<LoadedRun | null> =>
    stored === null ? loadPaused(log, runId, check) : loadStored(log, stored)
  return continuedLaunch({ begun: 'resumed', answers, load }, options)
}

/** A run that the log has. */
export function storedLaunch(
  runId: string,
  { begun, options }: { readonly begun: 'recovered' | 'retried'; readonly options: Parsed<ResumeOptions> },
  log: RunLog,
): Launch {
  return continuedLaunch({ begun, answers: [], load: loadStoredRun(log, runId, begun) }, options)
}

function loadStoredRun(log: RunLog, runId: string, begun: 'recovered' | 'retried'): GoOnOpening['load'] {
  return () => (begun === 'retried' ? loadRetried(log, runId) : loadRun(log, runId))
}

/** A new run that continues a recorded one. */
export function forkLaunch(
  events: Iterable<RunEvent> | AsyncIterable<RunEvent>,
  point: { readonly afterTurn: number; readonly prompt: InputMessage | null; readonly runId: string },
  { log, options }: { readonly log: RunLog; readonly options: Parsed<ForkOptions> },
): Launch {
  const { effects, mocks } = options
  const metadata = options.metadata ?? null
  const fork = forkOpening(recordedEvents(events), { ...point, resolve: (start) => resolveHistory(log, start) })
  const changed = { ...(effects !== undefined && { effects }), ...(mocks !== undefined && { mocks }) }
  return { opening: { ...fork, metadata }, metadata: metadata ?? {}, effects: changed }
}

function continuedLaunch(
  found: Pick<GoOnOpening, 'begun' | 'answers' | 'load'>,
  { configPolicy = 'compatible', metadata: given }: Parsed<ResumeOptions>,
): Launch {
  const metadata = given ?? null
  const opening = { kind: 'go_on', ...found, configPolicy, metadata, otherwise: null } as const
  return { opening, metadata: metadata ?? {} }
}
