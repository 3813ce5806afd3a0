import { checkToolNames, rulesOf } from './config.js'
import type { Config } from './config.js'
import { HarnessError } from './errors.js'
import type { Model, StructuredOutputMode } from './model/contracts.js'
import type { ModelRef } from './model/reference.js'
import type { RunOptions } from './options.js'
import type { OutputFormat } from './output/format.js'
import { outputFormat } from './output/schema.js'
import type { Parts } from './parts.js'
import type { Opening, RunPlan } from './run/plan.js'
import type { Frozen, Offer } from './run/frozen.js'
import { withEffects } from './run/fork.js'
import type { ForkEffects } from './run/fork.js'
import { parseWith } from './tools/schema.js'
import type { Schema } from './tools/schema.js'
import type { SpawnOptions, ToolSpec } from './tools/spec.js'

type StartChild = RunPlan['startChild']

/** What a run at the top is to do and with what. */
export function planOf(
  {
    config,
    parts,
    tools,
    startChild,
  }: { config: Config<unknown>; parts: Parts; tools: readonly ToolSpec[]; startChild: StartChild },
  {
    opening,
    options,
    model,
    effects,
  }: { opening: Opening; options: RunOptions; model: ModelRef | Model; effects: ForkEffects | null },
): RunPlan {
  const { root, settings, steps, tracing, sequential, outputType, outputMode, builtinTools } = config
  const own = [...tools, ...(options.tools ?? [])]
  checkToolNames([...builtinTools, ...own.map((tool) => tool.name)], outputType)
  // The run's own copy: what the caller does with the object afterwards is for the next run.
  const given = { limits: { ...options.limits } }
  const loadOffer = async (signal: AbortSignal): Promise<Offer> => {
    const [builtin, skills, servers] = await Promise.all([
      parts.builtinTools(),
      parts.skills(),
      parts.serverTools(signal),
    ])
    const all = [...builtin, ...own, ...(skills?.tools ?? []), ...servers.flat()]
    checkToolNames(
      all.map(({ name }) => name),
      outputType,
    )
    const offered = effects === null ? all : withEffects(all, effects)
    return { tools: offered, servers, skills: skills?.summary ?? '' }
  }
  return {
    opening,
    root,
    settings,
    steps,
    tracing,
    sequential,
    input: options.input ?? null,
    deltas: options.deltas ?? false,
    loadModel: () => parts.model(model),
    loadOffer,
    serverTools: config.mcpServers.length === 0 ? null : (signal) => parts.serverTools(signal),
    instructionsFor: (offer) => instructionsOf(config, options.instructions ?? config.instructions, offer),
    rulesFor: (output) => rulesOf(config, given, own, output),
    ...answersAs(outputType, outputMode, model),
    startChild,
  }
}

/** What a run under a call is to do, by what its tool says and else as its parent. */
export function childPlanOf(
  { config, parts, startChild }: { config: Config<unknown>; parts: Parts; startChild: StartChild },
  { opening, options, parent }: { opening: Opening; options: SpawnOptions<unknown>; parent: Frozen },
): RunPlan {
  const { root, steps, sequential, deltas } = parent
  const { outputRetries = config.outputRetries, toolRetries = config.toolRetries, outputType = null } = options
  const model = options.model ?? parent.model
  const tools = options.tools === 'inherit' ? [...parent.tools.values()] : (options.tools ?? [])
  checkToolNames(
    tools.map(({ name }) => name),
    outputType,
  )
  const rules = { ...config, outputRetries, toolRetries }
  return {
    opening,
    root,
    settings: options.settings ?? parent.constants.settings,
    steps,
    tracing: config.tracing,
    sequential,
    input: null,
    deltas,
    loadModel: () => parts.model(model),
    loadOffer: () => Promise.resolve({ tools, servers: [], skills: '' }),
    serverTools: null,
    instructionsFor: (offer) => withToolInstructions([options.instructions ?? ''], offer.tools),
    rulesFor: (output) => rulesOf(rules, { limits: options.limits ?? {} }, tools, output),
    ...answersAs(outputType, options.outputMode ?? 'auto', model),
    startChild,
  }
}

/** The system prompt: what was configured, the workspace, and what each tool has to say (spec §2.3). */
function instructionsOf(config: Config<unknown>, instructions: string, { tools, skills }: Offer): string {
  const root = config.namesRoot ? `Workspace root: ${config.root}` : ''
  return withToolInstructions([instructions, root, skills], tools)
}

function withToolInstructions(first: readonly string[], tools: readonly ToolSpec[]): string {
  const parts = [...first, ...tools.map((tool) => tool.instructions?.trim() ?? '')]
  return parts.filter((part) => part !== '').join('\n\n')
}

/** How a run's answer is asked for and read. */
function answersAs(
  outputType: Schema | null,
  outputMode: StructuredOutputMode | 'auto',
  model: ModelRef | Model,
): Pick<RunPlan, 'outputFor' | 'readAnswer'> {
  const outputFor = ({ capabilities }: Model): OutputFormat | null =>
    outputType === null ? null : outputFormat(outputType, outputMode, capabilities)
  // A model that cannot give such an answer is refused at once where it is known already.
  const format = typeof model === 'string' ? undefined : outputFor(model)
  return {
    outputFor: (loaded) => (format === undefined ? outputFor(loaded) : format),
    readAnswer: async (json) => {
      if (outputType === null) return json
      const parsed = await parseWith(outputType, json)
      if (parsed.ok) return parsed.value
      throw new HarnessError(
        'output_validation_failed',
        'The answer that was kept does not fit the `outputType` any more.',
      )
    },
  }
}
