import type { RunRules } from '#core/state/run-rules.js'
import type { Config } from '../config.js'
import { HarnessError } from '#contracts/errors.js'
import type { HarnessResources } from './harness-resources.js'
import { withEffects } from '#run/replay/fork.js'
import type { ForkEffects } from '#run/replay/fork.js'
import type { RecordedCalls } from '#run/replay/recorded-calls.js'
import type { Offer, ToolOffers } from '#core/loop/run-plan.js'
import { FINAL_RESULT } from '#core/state/output-format.js'
import { checkDeferred, checkToolNames, withUniqueIds } from '../tool-names.js'
import type { Model, ToolDefinition } from '#core/model-session.js'
import type { ToolSourceHost } from '#core/tools/tool-source.js'
import type { ToolSource, ToolSpec } from '#core/tools/tool-spec.js'

/** How the tools of a fork are run, with the results of the recording if they are taken from there. */
export type LaunchedEffects = ForkEffects & { readonly recorded?: RecordedCalls }

export interface ToolsetOptions {
  readonly config: Config<unknown>
  readonly resources: HarnessResources
  /** The tools of the harness, of the run and of extensions. */
  readonly own: () => readonly ToolSpec[]
  /** The workspace of the run. Default: that of the harness. */
  readonly root?: string
  /** Servers of the run alone. Default: none. */
  readonly servers?: readonly ToolSource[]
  /** How tools are run in a fork. */
  readonly effects: LaunchedEffects | null
  /** A recorded run asks no servers. */
  readonly asksServers: boolean
  /** Emits a warning of the run. */
  readonly warn: (message: string) => void
}

/** The offer of one run: the tools of its harness and its own, skills, and the tools of servers at its turn boundaries. */
export class Toolset implements ToolOffers {
  readonly canChange: boolean
  readonly #options: ToolsetOptions
  /** The servers of the harness, then those of the run. */
  readonly #sources: readonly ToolSource[]
  /** Warnings that were emitted: each is emitted once per run. */
  readonly #warned = new Set<string>()
  #effects: LaunchedEffects | null

  constructor(options: ToolsetOptions) {
    this.#options = options
    this.#effects = options.effects
    const { config, resources, servers = [] } = options
    this.canChange = config.mcpServers.length + servers.length > 0
    this.#sources = servers.length === 0 ? resources.sources : withUniqueIds([...resources.sources, ...servers])
  }

  get own(): readonly ToolSpec[] {
    return this.#options.own()
  }

  /** The first offer of a run, which also gets the warnings that no run has had. */
  async load(signal: AbortSignal, { dry }: Pick<RunRules, 'dry'>): Promise<Offer> {
    // A fork goes on without its recording and its mocks.
    if (dry === true) this.#effects ??= { effects: 'dry' }
    const { resources, asksServers, warn } = this.#options
    // A recorded run starts no programs.
    if (!asksServers) return this.describe(signal)
    resources.takeWarnings().forEach(warn)
    const offer = await this.describe(signal)
    await resources.warnOfMachine(offer.tools, warn)
    return offer
  }

  /** What the first offer of a run would be. */
  async describe(signal: AbortSignal): Promise<Offer> {
    return this.#offerOf(await this.#serverTools(signal, null))
  }

  /**
   * The same object while nothing has changed. A server that fails later does not end the run, which
   * keeps the tools that it had.
   */
  async refresh(signal: AbortSignal, before: Offer): Promise<Offer> {
    const servers = await this.#serverTools(signal, before.servers)
    if (servers.every((list, index) => list === before.servers[index])) return before
    try {
      return await this.#offerOf(servers)
    } catch (error) {
      if (!(error instanceof HarnessError)) throw error
      this.#warn(`The tools of servers have changed and cannot be used: ${error.message}`)
      return before
    }
  }

  readonly definitions = toolDefinitions

  #serverTools(signal: AbortSignal, before: Offer['servers'] | null): Promise<Offer['servers']> {
    const { resources, config, root = config.root, servers = [], asksServers } = this.#options
    if (!asksServers) return Promise.resolve([])
    const hostAt = (index: number): ToolSourceHost => {
      const server = servers[index - resources.sources.length]
      return server === undefined ? resources.host : resources.hostOf(server, root)
    }
    return resources.serverTools(this.#sources, { signal, before, hostOf: hostAt, warn: this.#warn })
  }

  async #offerOf(servers: Offer['servers']): Promise<Offer> {
    const { config, resources, own } = this.#options
    const [builtin, skills] = await Promise.all([resources.builtinTools(), resources.skills()])
    const ours = [...builtin, ...own(), ...(skills?.tools ?? [])]
    this.#checkServerNames(ours, servers)
    const all = [...ours, ...servers.flat()]
    const names = all.map(({ name }) => name)
    checkToolNames(names, config.outputType)
    checkDeferred(all)
    return {
      tools: this.#effects === null ? all : withEffects(all, this.#effects),
      servers,
      skills: skills?.summary ?? '',
    }
  }

  /** Servers may use the same tool names: the caller who combines them can rename them. */
  #checkServerNames(ours: readonly ToolSpec[], servers: Offer['servers']): void {
    const { config } = this.#options
    if (servers.length === 0) return
    const owners = new Map(ours.map(({ name }) => [name, 'a tool of the harness']))
    if (config.outputType !== null) owners.set(FINAL_RESULT, 'the call by which a model gives its answer')
    servers.forEach((tools, index) => {
      const server = `\`${this.#sources[index]?.id ?? ''}\``
      for (const { name } of tools) {
        const other = owners.get(name)
        if (other !== undefined) throw toolNameCollision(name, server, other)
        owners.set(name, `a tool of ${server}`)
      }
    })
  }

  readonly #warn = (message: string): void => {
    if (this.#warned.has(message)) return
    this.#warned.add(message)
    this.#options.warn(message)
  }
}

/**
 * The tools as a model is given them. Deferred ones are left out if there are tools that search them; if the provider searches itself,
 * they are marked, and those tools are left out.
 */
export function toolDefinitions(tools: readonly ToolSpec[], model: Model): readonly ToolDefinition[] {
  const search = tools.find(({ searchesTools }) => searchesTools !== undefined)
  if (search === undefined) return tools.map(definitionOf)
  const deferred = tools.filter((tool) => tool.deferred === true)
  const isHosted = search.searchesTools?.(deferred, model) === true
  return tools.flatMap((tool) => {
    if (isHosted ? tool.searchesTools !== undefined : tool.deferred === true) return []
    return tool.deferred === true ? { ...definitionOf(tool), deferred: true } : definitionOf(tool)
  })
}

/** Runs with the same tools share their definitions, and so what models make of them. */
const definitions = new WeakMap<ToolSpec, ToolDefinition>()

function definitionOf(spec: ToolSpec): ToolDefinition {
  const { name, description, parameters, strict, examples, hosted } = spec
  const before = definitions.get(spec)
  const isSame = before?.name === name && before.description === description && before.parameters === parameters
  if (isSame && before.strict === strict && before.examples === examples && before.hosted === hosted) return before
  const options = { ...(strict !== undefined && { strict }), ...(examples && { examples }), ...(hosted && { hosted }) }
  const definition = { name, description, parameters, ...options }
  definitions.set(spec, definition)
  return definition
}

function toolNameCollision(name: string, server: string, other: string): HarnessError {
  return new HarnessError(
    'invalid_options',
    `Server ${server} has a tool \`${name}\`, and so is called ${other}. Give the server a \`toolPrefix\`, or leave the tool out with \`excludeTools\`.`,
  )
}
