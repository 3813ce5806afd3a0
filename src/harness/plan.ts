import { budgetsOf, rulesOf } from './budgets.js'
import { checkGrants } from '../run/children/grants.js'
import { capabilitiesOf, checkToolNames } from './config.js'
import type { Config } from './config.js'
import { HarnessError } from '../contracts/errors.js'
import type { Model } from '../contracts/model.js'
import type { ModelRef } from '../contracts/model-reference.js'
import type { RunOptions } from './options.js'
import type { OutputFormat } from '../output/format.js'
import { demandsEvidence } from '../schema/evidence.js'
import { outputSchemaOf } from '../output/forms.js'
import { anyText, outputFormat, parseAnswer } from '../output/schema.js'
import type { AskedOutput } from '../output/schema.js'
import { RunOffers } from './toolset.js'
import type { OffersSetup } from './toolset.js'
import type { Parts } from './loader.js'
import type { Opening, RunPlan } from '../run/core/plan.js'
import type { Frozen, Offer } from '../run/core/frozen.js'
import { provenancePolicy } from '../run/provenance/policy.js'
import { marksOf } from '../run/stall/stall.js'
import type { SpawnOptions, ToolSpec } from '../tools/spec.js'
import { absolutePath } from '../util/platform/node.js'

type StartChild = RunPlan['startChild']

/** A run at the top. */
interface PlannedRun extends Pick<OffersSetup, 'effects' | 'asksServers' | 'warn'> {
  readonly opening: Opening
  readonly options: RunOptions
  readonly model: ModelRef | Model
  /** The tools of the extensions that every run has, and of those that this run has once it has begun. */
  readonly extensionTools: { readonly given: readonly ToolSpec[]; readonly ofRun: () => readonly ToolSpec[] }
}

/** The harness that a run belongs to. */
interface Means {
  readonly config: Config<unknown>
  readonly parts: Parts
  readonly startChild: StartChild
  readonly endChild: RunPlan['endChild']
  readonly endForgotten: RunPlan['endForgotten']
}

/** The plan of a run at the top. */
export function planOf(
  means: Means & { readonly tools: readonly ToolSpec[] },
  { opening, options, model, extensionTools, ...offering }: PlannedRun,
): RunPlan {
  const { config, parts, tools } = means
  const { sandbox, flowRules, settings, sequential, outputType, outputMode, packaged } = config
  const root = options.root === undefined ? config.root : absolutePath(options.root)
  const { mcpServers: servers = [] } = options
  const named = [...tools, ...(options.tools ?? [])]
  const own = (): readonly ToolSpec[] => [...named, ...extensionTools.ofRun()]
  checkToolNames([...packaged, ...[...named, ...extensionTools.given].map((tool) => tool.name)], outputType)
  const budgets = budgetsOf(options, config)
  const offers = new RunOffers({ config, parts, own, root, servers, ...offering })
  const asked = { type: outputType, mode: outputMode, validate: config.outputValidator }
  // Each run needs one: a spread copy with further members is slow to create.
  return Object.assign(basePlan(means, { opening, model }), answersAs(asked, parts, model), {
    root,
    timeMs: budgets.limits.timeMs,
    sandbox,
    settings,
    sequential,
    policies: flowRules === null ? [] : [provenancePolicy({ options: flowRules, inherited: [] })],
    input: options.input ?? null,
    deltas: options.deltas ?? false,
    loadOffer: async (signal) => {
      parts.takeWarnings().forEach(offering.warn)
      const offer = await offers.load(signal)
      // A recorded run starts no programs.
      if (offering.asksServers) await parts.warnOfSandbox(offer.tools, offering.warn)
      return offer
    },
    refreshOffer:
      config.mcpServers.length + servers.length === 0 ? null : (signal, before) => offers.refresh(signal, before),
    instructionsFor: (offer) => instructionsOf(options, config, { ...offer, root }),
    rulesFor: (output) => rulesOf(config, budgets, { tools: own(), output }),
  } satisfies Partial<RunPlan>)
}

/** A child run, as its tool starts it. */
interface PlannedChild extends Pick<RunPlan, 'opening' | 'policies'> {
  readonly options: SpawnOptions<unknown>
  readonly parent: Frozen
}

/** The plan of a child run: the options of its tool, else those of its parent. */
export function childPlanOf(means: Means, { opening, options, parent, policies }: PlannedChild): RunPlan {
  const { config, parts } = means
  const { root, sandbox, sequential, deltas } = parent
  const { outputRetries = config.outputRetries, toolRetries = config.toolRetries } = options
  const { outputType = null, outputMode = 'auto', outputValidator = null } = options
  const model = options.model ?? parent.model
  const tools = toolsOfChild(options, parent.tools)
  checkToolNames(
    tools.map(({ name }) => name),
    outputType,
  )
  checkGrants(tools, parent.tools)
  const budgets = budgetsOf(options, config)
  return {
    ...basePlan(means, { opening, model }),
    ...answersAs({ type: outputType, mode: outputMode, validate: outputValidator }, parts, model),
    ...(options.fork === true && {
      constants: parent.constants,
      outputFor: () => parent.output,
      readAnswer: parent.readAnswer,
    }),
    root,
    timeMs: budgets.limits.timeMs,
    sandbox,
    settings: options.settings ?? parent.constants.settings,
    sequential,
    policies,
    input: null,
    deltas,
    ...childOffers(parts, { options, parent, tools }),
    instructionsFor: (offer) => withToolInstructions([options.instructions ?? '', offer.skills], offer.tools),
    rulesFor: (output) => rulesOf({ outputRetries, toolRetries }, budgets, { tools, output }),
  }
}

/** The offers of a child: its tools, and those of its own servers at its turn boundaries. */
function childOffers(
  parts: Parts,
  { options, parent, tools }: Pick<PlannedChild, 'options' | 'parent'> & { readonly tools: readonly ToolSpec[] },
): Pick<RunPlan, 'loadOffer' | 'refreshOffer'> {
  const sources = parts.namedSources(options.mcpServers ?? [])
  const serverTools = (signal: AbortSignal, before: Offer['servers'] | null): Promise<Offer['servers']> =>
    parts.serverTools(sources, { signal, before, hostOf: () => parts.host, warn: parts.warn })
  const offerOf = (servers: Offer['servers'], skills: string): Offer => {
    // An inherited tool of the same server is the same tool.
    const more = servers.flat().filter((tool) => !tools.includes(tool))
    const all = [...tools, ...more]
    checkToolNames(
      all.map(({ name }) => name),
      options.outputType ?? null,
    )
    checkGrants(more, parent.tools)
    return { tools: all, servers, skills }
  }
  return {
    loadOffer: async (signal) => {
      const inherits = options.tools === 'inherit' || options.fork === true
      const skills = inherits ? ((await parts.skills())?.summary ?? '') : ''
      return offerOf(await serverTools(signal, null), skills)
    },
    refreshOffer:
      sources.length === 0
        ? null
        : async (signal, before) => {
            const servers = await serverTools(signal, before.servers)
            const isSame = servers.every((list, index) => list === before.servers[index])
            return isSame ? before : offerOf(servers, before.skills)
          },
  }
}

/** The same for every run of a harness. */
function basePlan(
  { config, parts, startChild, endChild, endForgotten }: Means,
  { opening, model }: Pick<PlannedRun, 'opening' | 'model'>,
): Pick<RunPlan, 'opening' | 'prices' | 'marksFor' | 'loadModel' | 'startChild' | 'endChild' | 'endForgotten'> {
  return {
    opening,
    prices: config.prices,
    marksFor: marksOf,
    loadModel: () => parts.model(model),
    startChild,
    endChild,
    endForgotten,
  }
}

/** The tools of a child. */
export function toolsOfChild(
  { tools = [], withoutTools = [], fork = false }: SpawnOptions<unknown>,
  inherited: ReadonlyMap<string, ToolSpec>,
): readonly ToolSpec[] {
  if (!fork && tools !== 'inherit') return tools
  return [...inherited.values()].filter(({ name }) => !withoutTools.includes(name))
}

/** The system prompt: the configured one, the workspace, and the instructions of each tool. */
function instructionsOf(
  options: RunOptions,
  config: Config<unknown>,
  { tools, skills, root }: Offer & { readonly root: string },
): string {
  const { instructions = config.instructions } = options
  const rootLine = config.namesRoot || options.root !== undefined ? `Workspace root: ${root}` : ''
  return withToolInstructions([instructions, rootLine, skills], tools)
}

function withToolInstructions(first: readonly string[], tools: readonly ToolSpec[]): string {
  const parts = [...first, ...tools.map((tool) => tool.instructions?.trim() ?? '')]
  return parts.filter((part) => part !== '').join('\n\n')
}

/** How a run's answer is asked for and read. */
function answersAs(
  { type, ...how }: Omit<AskedOutput, 'type'> & { readonly type: AskedOutput['type'] | null },
  parts: Parts,
  model: ModelRef | Model,
): Pick<RunPlan, 'outputFor' | 'readAnswer'> {
  const hasAnswer = type !== null || (how.validate ?? null) !== null
  const asked = { ...how, type: type ?? anyText, checkEvidence: type === null ? null : evidenceOf(type, parts) }
  const outputFor = (model: Model): OutputFormat | null =>
    hasAnswer ? outputFormat(asked, capabilitiesOf(model)) : null
  // A model that is loaded and cannot give such an answer is rejected immediately.
  const format = typeof model === 'string' ? undefined : outputFor(model)
  return {
    outputFor: (loaded) => (format === undefined ? outputFor(loaded) : format),
    readAnswer: async (json) => {
      if (type === null) return json
      const parsed = await parseAnswer(type, json)
      if (parsed.ok) return parsed.value
      throw new HarnessError('output_validation_failed', 'The stored answer does not fit the `outputType` any more.')
    },
  }
}

/** The check of the evidence that a type demands; null if it demands none. */
function evidenceOf(type: AskedOutput['type'], parts: Parts): NonNullable<AskedOutput['checkEvidence']> | null {
  const schema = outputSchemaOf(type)
  if (!demandsEvidence(schema)) return null
  return async (json, context) => {
    const { evidenceIssues } = await import('../output/evidence-issues.js')
    return evidenceIssues(schema, json, await parts.evidenceCheck(context))
  }
}
