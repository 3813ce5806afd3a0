import { checkOutput, checkToolNames } from './config.js'
import type { Config } from './config.js'
import type { RunOptions } from './options.js'
import { HarnessError } from '../contracts/errors.js'
import type { Model } from '../contracts/model.js'
import type { ModelRef } from '../contracts/model-reference.js'
import type { ToolSpec } from '../tools/spec.js'

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

/** Refuses what a harness cannot run with: no model, a model that cannot give its answer, and tools of one name. */
export function checkRun(options: RunOptions, config: Config<unknown>, own: readonly ToolSpec[]): void {
  chosenModel(options, config)
  depsOf(options, config)
  const { tools = [], model } = options
  const { packaged, outputType, outputMode } = config
  const { seams } = config.seams.with(options.use)
  checkToolNames([...packaged, ...[...own, ...tools, ...seams.tools].map(({ name }) => name)], outputType)
  if (model !== undefined) checkOutput(outputType, outputMode, model)
}
