import { checkRunOptions, checkToolNames, ownMetadata, ownPrompt, resolveConfig, rulesOf } from './config.js'
import type { Config, HarnessOptions, RunOptions } from './config.js'
import { HarnessError } from './errors.js'
import type { Model } from './model/contracts.js'
import type { ModelRef } from './model/reference.js'
import type { OutputFormat } from './output/format.js'
import { outputFormat } from './output/schema.js'
import type { HarnessResult } from './report.js'
import { RunAbort } from './run/abort.js'
import { conduct } from './run/conduct.js'
import type { RunPlan } from './run/conduct.js'
import { RunContext } from './run/context.js'
import { EventQueue } from './run/queue.js'
import { openStream } from './run/stream.js'
import type { HarnessStream, StreamedRun } from './run/stream.js'
import type { ToolSpec } from './tools/spec.js'
import type { ContentPart } from './transcript/entry.js'
import { systemClock } from './util/clock.js'

/** What a run is asked: text, or parts with images and files among them. */
export type Prompt = string | readonly ContentPart[]

/**
 * A model, tools and settings that work together: set-up, without the state of any run. Serves any number of runs at once.
 *
 * ```ts
 * await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './workspace' })
 * const result = await harness.run('What is in here?')
 * ```
 */
export class Harness<Output = string> implements AsyncDisposable {
  readonly #config: Config<Output>
  readonly #clock = systemClock()
  #tools: readonly ToolSpec[]
  /** One set for all runs, so that they share what they know of the workspace. */
  #builtinTools: Promise<readonly ToolSpec[]> | null = null
  /** Models made from references, by reference: ours to close. */
  readonly #models = new Map<ModelRef, Promise<Model>>()
  readonly #running = new Map<RunAbort, Promise<unknown>>()
  #closing: Promise<void> | null = null

  /** Throws `invalid_options` for what is wrong in `options`. Does no I/O and loads nothing. */
  constructor(options: HarnessOptions<Output> = {}) {
    this.#config = resolveConfig(options)
    this.#tools = this.#config.tools
  }

  /** Runs to the end, or to a pause. Rejects with a `HarnessError` that carries what the run had done (`error.run`). */
  async run(prompt: Prompt, options: RunOptions = {}): Promise<HarnessResult<Output>> {
    const { queue, outcome } = this.#begin(prompt, options)
    queue.drop()
    return outcome
  }

  /** Begins a run and tells it as it happens. Throws for options that are wrong, and on a closed harness. */
  stream(prompt: Prompt, options: RunOptions = {}): HarnessStream<Output> {
    return openStream(this.#begin(prompt, options))
  }

  /** Offers one tool more, to runs that begin from now on. Throws when its name is taken. */
  addTool(tool: ToolSpec): void {
    const { builtinTools, outputType } = this.#config
    checkToolNames([...builtinTools, ...this.#tools.map(({ name }) => name), tool.name], outputType)
    this.#tools = [...this.#tools, tool]
  }

  /** Loads what the first run would load: the model's adapter and the built-in tools. Sends nothing to a model. */
  async connect(): Promise<void> {
    this.#assertOpen()
    await Promise.all([
      this.#loadBuiltinTools(),
      this.#config.model === null ? null : this.#loadModel(this.#config.model),
    ])
  }

  /** Cancels the runs under way, waits for them, and closes what the harness opened. May be called more than once. */
  async close(): Promise<void> {
    this.#closing ??= this.#close()
    await this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #begin(prompt: Prompt, options: RunOptions): StreamedRun<Output> {
    this.#assertOpen()
    checkRunOptions(options)
    const model = options.model ?? this.#config.model
    if (model === null) throw missingModel()
    const plan = this.#plan(ownPrompt(prompt), options, model)
    const runId = options.runId ?? `run_${this.#clock.id()}`
    const queue = new EventQueue()
    const abort = new RunAbort(options.signal)
    abort.onAbort(() => queue.stopWaiting())
    const context = new RunContext({
      runId,
      parent: null,
      metadata: ownMetadata(options.metadata),
      log: options.log ?? this.#config.log,
      clock: this.#clock,
      hooks: this.#config.hooks,
      queue,
      abort,
    })
    const outcome = conduct<Output>(context, plan).finally(() => {
      queue.close()
      this.#running.delete(abort)
    })
    this.#running.set(abort, outcome)
    return { runId, queue, abort, outcome }
  }

  #plan(prompt: Prompt, options: RunOptions, model: ModelRef | Model): RunPlan {
    const config = this.#config
    const { root, settings, steps, sequential, outputType, outputMode, builtinTools } = config
    const own = [...this.#tools, ...(options.tools ?? [])]
    checkToolNames([...builtinTools, ...own.map((tool) => tool.name)], outputType)
    const outputFor = ({ capabilities }: Model): OutputFormat | null =>
      outputType === null ? null : outputFormat(outputType, outputMode, capabilities)
    // The run's own copy: what the caller does with the object afterwards is for the next run.
    const given = { limits: { ...options.limits } }
    // A model that cannot give such an answer is refused at once where it is known already.
    const format = typeof model === 'string' ? undefined : outputFor(model)
    return {
      prompt,
      history: [],
      root,
      settings,
      steps,
      sequential,
      input: options.input ?? null,
      deltas: options.deltas ?? false,
      loadModel: () => this.#loadModel(model),
      loadTools: async () => [...(await this.#loadBuiltinTools()), ...own],
      instructionsFor: (tools) => instructionsOf(config, options.instructions ?? config.instructions, tools),
      outputFor: (loaded) => (format === undefined ? outputFor(loaded) : format),
      rulesFor: (output) => rulesOf(config, given, own, output),
    }
  }

  #loadBuiltinTools(): Promise<readonly ToolSpec[]> {
    const names = this.#config.builtinTools
    if (names.length === 0) return Promise.resolve([])
    return (this.#builtinTools ??= import('./toolbox/builtin.js').then(({ builtinTools }) => builtinTools(names)))
  }

  #loadModel(model: ModelRef | Model): Promise<Model> {
    if (typeof model !== 'string') return Promise.resolve(model)
    let loading = this.#models.get(model)
    if (loading === undefined) {
      loading = import('./providers/infer.js').then(({ inferModel }) => inferModel(model))
      this.#models.set(model, loading)
      // What could not be loaded is tried again by the next run.
      loading.catch(() => this.#models.delete(model))
    }
    return loading
  }

  async #close(): Promise<void> {
    for (const abort of this.#running.keys()) abort.cancel(new HarnessError('closed', 'The harness was closed.'))
    await Promise.allSettled(this.#running.values())
    const closed = await Promise.allSettled([...this.#models.values()].map(closeLoaded))
    for (const result of closed) if (result.status === 'rejected') throw result.reason
  }

  #assertOpen(): void {
    if (this.#closing !== null) throw new HarnessError('closed', 'The harness is closed: make a new one to run again.')
  }
}

async function closeLoaded(loading: Promise<Model>): Promise<void> {
  const model = await loading.catch(() => undefined)
  await model?.close?.()
}

/** The system prompt: what was configured, the workspace, and what each tool has to say (spec §2.3). */
function instructionsOf(config: Config<unknown>, instructions: string, tools: readonly ToolSpec[]): string {
  const root = config.namesRoot ? `Workspace root: ${config.root}` : ''
  const parts = [instructions, root, ...tools.map((tool) => tool.instructions?.trim() ?? '')]
  return parts.filter((part) => part !== '').join('\n\n')
}

function missingModel(): HarnessError {
  return new HarnessError(
    'missing_model',
    'No model was chosen. Give `model` to the harness or to the run, such as `anthropic:claude-sonnet-5`, or set `THINHARNESS_MODEL`.',
  )
}
