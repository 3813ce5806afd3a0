import { checkOutput } from '../config.js'
import { checkToolNames } from '../tool-names.js'
import type { Config } from '../config.js'
import type { RunOptions } from '../options.js'
import { HarnessError } from '#contracts/errors.js'
import type { Model } from '#core/model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { ResumeState } from '#contracts/result.js'
import type { SigningKey } from '#core/loop/signature.js'
import type { Answer } from '#core/state/answers.js'
import { matchAnswers, readAnswers } from '#run/resume/match-answers.js'
import { pendingOf } from '#core/loop/decide.js'
import { readPaused } from '#run/resume/stored-state.js'
import type { StoredState } from '#run/resume/stored-state.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { shownValue } from '#util/mismatch.js'
import { checkRunId } from '../option-shapes.js'

/** The model of a run. Throws `missing_model` if neither the run nor the harness has one. */
export function chosenModel(
  { model }: Pick<RunOptions, 'model'>,
  config: Pick<Config<unknown>, 'model'>,
): ModelRef | Model {
  const chosen = model ?? config.model
  if (chosen !== null) return chosen
  throw new HarnessError(
    'missing_model',
    'No model was chosen. Give `model` to the harness or to the run, such as `anthropic:claude-sonnet-5`, or set `THINHARNESS_MODEL`.',
  )
}

/** How a run gets its dependencies; null if there are none. Throws `invalid_options` if there have to be some. */
export function depsOf(
  { deps }: Pick<RunOptions, 'deps'>,
  config: Pick<Config<unknown>, 'deps' | 'needsDeps'>,
): Config<unknown>['deps'] {
  const depsFor = deps === undefined ? config.deps : () => deps
  if (depsFor !== null || !config.needsDeps) return depsFor
  throw new HarnessError('invalid_options', 'This harness was created by `withDeps`: pass `deps` to it, or to the run.')
}

/** Rejects a run without a model, with a model that cannot give its answer, and with two tools of one name. */
export function checkRun(options: RunOptions, config: Config<unknown>, own: readonly ToolSpec[]): void {
  chosenModel(options, config)
  depsOf(options, config)
  const { tools = [], model } = options
  const { packaged, outputType, outputMode } = config
  const extensions = config.extensions.with(options.use)
  checkToolNames([...packaged, ...[...own, ...tools, ...extensions.tools].map(({ name }) => name)], outputType)
  if (model !== undefined) checkOutput(outputType, outputMode, model)
}

/** Throws `invalid_options` for a recorded run that cannot be read, such as the id of a run. */
export function checkRecorded(log: unknown): void {
  if (typeof log === 'object' && log !== null && (Symbol.iterator in log || Symbol.asyncIterator in log)) return
  throw new HarnessError(
    'invalid_options',
    `Expected the log of a run to be an iterable of its events, got ${shownValue(log)}.`,
  )
}

/** A paused run, and the answers with which it continues. */
export interface Resumed {
  readonly runId: string
  /** Null if only its log is known. */
  readonly stored: StoredState | null
  readonly answers: readonly Answer[]
}

/**
 * Checks the arguments of `resume`, as far as that is possible without the log. Throws `invalid_options`, `invalid_state` and
 * `invalid_answer`.
 */
export function parseResumed(
  runIdOrState: string | ResumeState,
  given: unknown,
  signingKey: SigningKey | null,
): Resumed {
  if (typeof runIdOrState === 'string') {
    if (signingKey !== null) throw new HarnessError('invalid_state', UNSIGNED)
    return parseResumedRun(runIdOrState, given)
  }
  const stored = readPaused(runIdOrState, signingKey)
  const answers = readAnswers(given)
  matchAnswers(answers, pendingOf(stored.state))
  return { runId: stored.state.runId, stored, answers }
}

const UNSIGNED =
  'resume: with a `signingKey`, a run is continued by its signed state; `resumeRun` takes an id that does not come from a client.'

/** As `parseResumed`, for the id of a run that the host vouches for. */
export function parseResumedRun(runId: string, given: unknown): Resumed {
  checkRunId(runId)
  return { runId, stored: null, answers: readAnswers(given) }
}
