import { checkGrants } from '#run/children/child-approvals.js'
import { AnswerForm } from '#run/output/answer-form.js'
import type { RequestedAnswer } from '#run/output/answer-form.js'
import type { RunContext } from '#core/loop/run-context.js'
import type { Offer, Opening, RunHost, RunPlan, RunSetup, ToolOffers } from '#core/loop/run-plan.js'
import type { RunState } from '#core/state/state.js'
import { demandsEvidence } from '#schema/evidence.js'
import { outputSchemaOf } from '#run/output/output-form.js'
import type { OutputType } from '#core/tools/output-type.js'
import type { SpawnOptions, ToolSource, ToolSpec } from '#core/tools/tool-spec.js'
import type { Model } from '#core/model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import { absolutePath } from '#util/platform/node.js'
import { Money } from '#run/money/run-money.js'
import { plannedRules, programRules } from '../default-limits.js'
import { checkToolNames } from '../tool-names.js'
import type { Config } from '../config.js'
import type { RunOptions } from '../options.js'
import type { HarnessResources } from './harness-resources.js'
import { toolDefinitions, Toolset } from './toolset.js'
import type { LaunchedEffects } from './toolset.js'

/** The harness that a run belongs to. */
export interface PlanDependencies {
  readonly config: Config<unknown>
  readonly resources: HarnessResources
  readonly host: RunHost
}

/** A run at the top. */
interface PlannedRun {
  readonly opening: Opening
  readonly options: RunOptions
  readonly model: ModelRef | Model
  /** The tools of the harness when the run was launched. */
  readonly tools: readonly ToolSpec[]
  readonly effects: LaunchedEffects | null
  readonly context: RunContext
}

/** The plan of a run at the top. */
export function createPlan(
  { config, resources, host }: PlanDependencies,
  { opening, options, model, tools, effects, context }: PlannedRun,
): RunPlan {
  const { sandbox, settings, sequential, outputType, outputMode, outputValidator, packaged, prices } = config
  const { instructions = config.instructions, mcpServers: servers = [], input = null, deltas = false } = options
  const root = options.root === undefined ? config.root : absolutePath(options.root)
  const namesRoot = config.namesRoot || options.root !== undefined
  const listed = [...tools, ...(options.tools ?? [])]
  checkToolNames([...packaged, ...[...listed, ...context.extensions.tools].map(({ name }) => name)], outputType)
  const offers = new Toolset({
    config,
    resources,
    // An extension can have other tools once the run has begun.
    own: () => [...listed, ...context.extensions.tools],
    root,
    servers,
    effects,
    asksServers: context.recording === null,
    warn: (message) => context.emitLive('warning', { message }),
  })
  const answer = { type: outputType, mode: outputMode, validate: outputValidator }
  return {
    opening,
    host,
    model,
    offers,
    answer: createAnswerForm(answer, resources, model),
    instructions: [instructions, namesRoot ? `Workspace root: ${root}` : ''],
    root,
    sandbox,
    settings,
    money: new Money(prices),
    rules: { ...plannedRules(options, config), ...(isDry(effects) && { dry: true as const }) },
    input,
    deltas,
    sequential,
    inherited: null,
    recordedRules: null,
  }
}

/** Its tools, or some of them, have no effects of their own. */
function isDry(effects: LaunchedEffects | null): boolean {
  return effects !== null && ((effects.effects ?? 'live') !== 'live' || Object.keys(effects.mocks ?? {}).length > 0)
}

/** A child run, as its tool starts it. */
interface PlannedChild {
  readonly opening: Opening
  readonly options: SpawnOptions<unknown>
  readonly parent: RunSetup
  /** The state of the run that starts it. */
  readonly above: RunState
}

/** The plan of a child run: the options of its tool, else those of its parent. */
export function createChildPlan(
  { config, resources, host }: PlanDependencies,
  { opening, options, parent, above }: PlannedChild,
): RunPlan {
  const { root, sandbox, sequential, deltas } = parent.plan
  const { outputType: type = null, outputMode: mode = 'auto', outputValidator: validate = null } = options
  const model = options.model ?? parent.model
  const tools = toolsOfChild(options, parent.tools)
  checkToolNames(
    tools.map(({ name }) => name),
    type,
  )
  checkGrants(tools, parent.tools)
  const isFork = options.history === 'fork'
  const inheritsTools = isFork || options.tools === 'inherit' || options.as === 'self'
  const servers = resources.namedSources(options.mcpServers ?? [])
  return {
    opening,
    host,
    model,
    offers: new ChildOffers(resources, { parent, own: tools, servers, outputType: type, inheritsTools }),
    answer: isFork ? parent.plan.answer : createAnswerForm({ type, mode, validate }, resources, model),
    instructions: [options.instructions ?? ''],
    root,
    sandbox,
    settings: options.settings ?? parent.constants.settings,
    money: new Money(config.prices),
    rules: options.as === 'self' ? programRules(options, above) : plannedRules(options, config),
    input: null,
    deltas,
    sequential,
    inherited: isFork ? { constants: parent.constants, output: parent.output } : null,
    recordedRules: null,
  }
}

/** The tools of a child. */
export function toolsOfChild(
  { as, tools = as === 'self' ? 'inherit' : [], withoutTools = [], history }: SpawnOptions<unknown>,
  inherited: ReadonlyMap<string, ToolSpec>,
): readonly ToolSpec[] {
  if (history !== 'fork' && tools !== 'inherit') return tools
  return [...inherited.values()].filter(({ name }) => !withoutTools.includes(name))
}

interface ChildTools {
  readonly parent: RunSetup
  readonly own: readonly ToolSpec[]
  /** The servers of the child alone. */
  readonly servers: readonly ToolSource[]
  readonly outputType: OutputType | null
  /** The child has the tools of its parent, and so its skills. */
  readonly inheritsTools: boolean
}

/** The offers of a child: its tools, and those of its own servers at its turn boundaries. */
class ChildOffers implements ToolOffers {
  readonly own: readonly ToolSpec[]
  readonly canChange: boolean
  readonly definitions = toolDefinitions
  readonly #resources: HarnessResources
  readonly #child: ChildTools

  constructor(resources: HarnessResources, child: ChildTools) {
    this.#resources = resources
    this.#child = child
    this.own = child.own
    this.canChange = child.servers.length > 0
  }

  async load(signal: AbortSignal): Promise<Offer> {
    const skills = this.#child.inheritsTools ? ((await this.#resources.skills())?.summary ?? '') : ''
    return this.#offerOf(await this.#serverTools(signal, null), skills)
  }

  async refresh(signal: AbortSignal, before: Offer): Promise<Offer> {
    const servers = await this.#serverTools(signal, before.servers)
    const isSame = servers.every((list, index) => list === before.servers[index])
    return isSame ? before : this.#offerOf(servers, before.skills)
  }

  #serverTools(signal: AbortSignal, before: Offer['servers'] | null): Promise<Offer['servers']> {
    const { host, warn } = this.#resources
    return this.#resources.serverTools(this.#child.servers, { signal, before, hostOf: () => host, warn })
  }

  #offerOf(servers: Offer['servers'], skills: string): Offer {
    const { own, parent, outputType } = this.#child
    // An inherited tool of the same server is the same tool.
    const more = servers.flat().filter((tool) => !own.includes(tool))
    const tools = [...own, ...more]
    checkToolNames(
      tools.map(({ name }) => name),
      outputType,
    )
    checkGrants(more, parent.tools)
    return { tools, servers, skills }
  }
}

function createAnswerForm(
  requested: Omit<RequestedAnswer, 'checkEvidence'>,
  resources: HarnessResources,
  model: ModelRef | Model,
): AnswerForm {
  const { type } = requested
  const checkEvidence = type === null ? null : evidenceCheckFor(type, resources)
  return new AnswerForm(checkEvidence === null ? requested : { ...requested, checkEvidence }, model)
}

/** The check of the evidence that a type demands; null if it demands none. */
function evidenceCheckFor(
  type: OutputType,
  resources: HarnessResources,
): NonNullable<RequestedAnswer['checkEvidence']> | null {
  const schema = outputSchemaOf(type)
  if (!demandsEvidence(schema)) return null
  return async (json, context) => {
    const { evidenceIssues } = await import('#run/output/evidence-issues.js')
    return evidenceIssues(schema, json, await resources.evidenceCheck(context))
  }
}
