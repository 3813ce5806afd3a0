import { checkToolNames } from './config.js'
import type { Config } from './config.js'
import { HarnessError } from '../contracts/errors.js'
import type { Parts } from './loader.js'
import { withEffects } from '../run/replay/fork.js'
import type { ForkEffects } from '../run/replay/fork.js'
import type { Offer } from '../run/core/frozen.js'
import { FINAL_RESULT } from '../output/format.js'
import { withUniqueIds } from '../tools/source-ids.js'
import type { ToolSourceHost } from '../tools/source.js'
import type { ToolSource, ToolSpec } from '../tools/spec.js'

export interface OffersSetup {
  readonly config: Config<unknown>
  readonly parts: Parts
  /** The tools of the harness, of the run and of extensions. */
  readonly own: () => readonly ToolSpec[]
  /** The workspace of the run. Default: that of the harness. */
  readonly root?: string
  /** Servers of the run alone. Default: none. */
  readonly servers?: readonly ToolSource[]
  /** How tools are run in a fork. */
  readonly effects: ForkEffects | null
  /** A recorded run asks no servers. */
  readonly asksServers: boolean
  /** Emits a warning of the run. */
  readonly warn: (message: string) => void
}

/** The offer of one run: the tools of its harness and its own, skills, and the tools of servers at its turn boundaries. */
export class RunOffers {
  readonly #setup: OffersSetup
  /** The servers of the harness, then those of the run. */
  readonly #sources: readonly ToolSource[]
  /** Warnings that were emitted: each is emitted once per run. */
  readonly #warned = new Set<string>()

  constructor(setup: OffersSetup) {
    this.#setup = setup
    const { parts, servers = [] } = setup
    this.#sources = servers.length === 0 ? parts.sources : withUniqueIds([...parts.sources, ...servers])
  }

  async load(signal: AbortSignal): Promise<Offer> {
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

  #serverTools(signal: AbortSignal, before: Offer['servers'] | null): Promise<Offer['servers']> {
    const { parts, config, root = config.root, servers = [], asksServers } = this.#setup
    if (!asksServers) return Promise.resolve([])
    const hostOf = (index: number): ToolSourceHost => {
      const own = servers[index - parts.sources.length]
      return own === undefined ? parts.host : parts.hostOf(own, root)
    }
    return parts.serverTools(this.#sources, { signal, before, hostOf, warn: this.#warn })
  }

  async #offerOf(servers: Offer['servers']): Promise<Offer> {
    const { config, parts, own, effects } = this.#setup
    const [builtin, skills] = await Promise.all([parts.builtinTools(), parts.skills()])
    const ours = [...builtin, ...own(), ...(skills?.tools ?? [])]
    this.#checkServerNames(ours, servers)
    const all = [...ours, ...servers.flat()]
    const names = all.map(({ name }) => name)
    checkToolNames(names, config.outputType)
    return {
      tools: effects === null ? all : withEffects(all, effects),
      servers,
      skills: skills?.summary ?? '',
    }
  }

  /** Servers may use the same tool names: the caller who combines them can rename them. */
  #checkServerNames(ours: readonly ToolSpec[], servers: Offer['servers']): void {
    const { config } = this.#setup
    if (servers.length === 0) return
    const owners = new Map(ours.map(({ name }) => [name, 'a tool of the harness']))
    if (config.outputType !== null) owners.set(FINAL_RESULT, 'the call by which a model gives its answer')
    servers.forEach((tools, index) => {
      const server = `\`${this.#sources[index]?.id ?? ''}\``
      for (const { name } of tools) {
        const other = owners.get(name)
        if (other !== undefined) throw collision(name, server, other)
        owners.set(name, `a tool of ${server}`)
      }
    })
  }

  readonly #warn = (message: string): void => {
    if (this.#warned.has(message)) return
    this.#warned.add(message)
    this.#setup.warn(message)
  }
}

function collision(name: string, server: string, other: string): HarnessError {
  return new HarnessError(
    'invalid_options',
    `Server ${server} has a tool \`${name}\`, and so is called ${other}. Give the server a \`toolPrefix\`, or leave the tool out with \`excludeTools\`.`,
  )
}
