import type { Config } from '../config.js'
import { ToolOrder, withUniqueIds } from '../tool-names.js'
import { HarnessError, messageOf } from '#contracts/errors.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { Offer } from '#core/loop/run-plan.js'
import type { Model } from '#core/model-session.js'
import type { CheckEvidence } from '#core/tools/evidence.js'
import type { ToolSourceHost } from '#core/tools/tool-source.js'
import type { ToolSource, ToolSpec, SandboxMode } from '#core/tools/tool-spec.js'
import type { EvidenceSources } from '#toolbox/evidence-check.js'
import type { SandboxState } from '#toolbox/sandbox/sandbox.js'
import type { LoadedSkills } from '#toolbox/skills/load-skills.js'
import { nodeModule } from '#util/platform/node.js'

/**
 * The parts of a harness that are loaded when first needed, shared by all its runs and closed with it: adapters, built-in
 * tools, skills, and the connections of its servers.
 */
export class HarnessResources {
  readonly #config: Config<unknown>
  /** The host of the servers of the harness and of its child runs. */
  readonly host: ToolSourceHost
  /** The hosts of servers of single runs. */
  #hosts: WeakMap<ToolSource, ToolSourceHost> | null = null
  /** One set for all runs, so that they share their knowledge of the workspace. */
  #builtinTools: Promise<readonly ToolSpec[]> | null = null
  #skills: Promise<LoadedSkills> | null = null
  #sandbox: Promise<SandboxState> | null = null
  #hasWarned = false
  #hasCheckedRoot = false
  /** Models made from references, by reference. */
  readonly #models = new Map<ModelRef, Promise<Model>>()

  /** All servers of the harness and of its child runs, each under an id of its own. */
  readonly #sources = new Map<ToolSource, ToolSource>()
  #order: ToolOrder | null = null
  /** The servers of the harness, each once. */
  readonly sources: readonly ToolSource[]
  /** Warnings from a time without runs. */
  readonly #waiting: string[] = []

  /** Reports a warning to the runs in progress, or to the next one. */
  readonly warn: (message: string) => void

  /** `warn` reports problems with optional skills and servers; it returns false if there was no run to report to. */
  constructor(config: Config<unknown>, warn: (message: string) => boolean) {
    this.#config = config
    this.sources = this.namedSources(config.mcpServers)
    this.warn = (message) => {
      if (!warn(message) && this.#waiting.length < MOST_WAITING) this.#waiting.push(message)
    }
    this.host = { roots: [config.root], warn: this.warn }
  }

  /** Warnings for the next run to emit. */
  takeWarnings(): readonly string[] {
    return this.#waiting.splice(0)
  }

  builtinTools(): Promise<readonly ToolSpec[]> {
    const { builtinTools: names, subagents } = this.#config
    if (names.length === 0 && subagents === null) return Promise.resolve([])
    this.#builtinTools ??= import('#toolbox/builtin.js').then(({ builtinTools }) => builtinTools(names, subagents))
    return this.#builtinTools
  }

  /** The sandbox for the programs of these tools; null if none of them wants one. */
  async sandbox(tools: readonly ToolSpec[]): Promise<SandboxState | null> {
    if (tools.every((tool) => sandboxModeOf(tool, this.#config.sandbox) === null)) return null
    this.#sandbox ??= import('#toolbox/sandbox/sandbox.js').then(({ sandboxHere }) => sandboxHere())
    return this.#sandbox
  }

  /** Reports a missing sandbox to the first run that wants one, and a missing workspace to the first run. */
  async warnOfMachine(tools: readonly ToolSpec[], warn: (message: string) => void): Promise<void> {
    if (!this.#hasCheckedRoot) {
      this.#hasCheckedRoot = true
      const missing = missingRoot(this.#config)
      if (missing !== null) warn(missing)
    }
    if (this.#hasWarned) return
    const warning = sandboxWarning(tools, this.#config.sandbox, await this.sandbox(tools))
    if (warning === null) return
    this.#hasWarned = true
    warn(warning)
  }

  /** Null if none are configured. */
  skills(): Promise<LoadedSkills | null> {
    const { skills, root } = this.#config
    if (skills === null) return Promise.resolve(null)
    this.#skills ??= import('#toolbox/skills/load-skills.js').then(async ({ loadSkills }) => {
      const loaded = await loadSkills(skills, root)
      for (const warning of loaded.warnings) this.warn(warning)
      return loaded
    })
    // The next run tries again.
    this.#skills.catch(() => (this.#skills = null))
    return this.#skills
  }

  /** Servers, each once and under an id that no other server of this harness has. */
  namedSources(given: readonly ToolSource[]): readonly ToolSource[] {
    return [...new Set(given)].map((source) => {
      const known = this.#sources.get(source)
      if (known !== undefined) return known
      const named = withUniqueIds([...this.#sources.keys(), source]).at(-1) ?? source
      this.#sources.set(source, named)
      return named
    })
  }

  /**
   * The tools that each server offers now; the same lists while nothing has changed. The failure of a server is reported to
   * `warn`, and it keeps the tools that it had `before`, at first none. Rejects if a required server fails at first.
   */
  serverTools(sources: readonly ToolSource[], { signal, before, hostOf, warn }: Asking): Promise<Offer['servers']> {
    return Promise.all(
      sources.map(async (source, index) => {
        try {
          return (this.#order ??= new ToolOrder()).sorted(source, await source.tools(hostOf(index), signal))
        } catch (error) {
          signal.throwIfAborted()
          const known = before?.[index]
          if (source.required && known === undefined) throw requiredSourceError(source, error)
          const left = known === undefined || known.length === 0 ? 'is left out' : 'cannot list its tools now'
          warn(`\`${source.id}\` ${left}: ${messageOf(error)}`)
          return known ?? NO_TOOLS
        }
      }),
    )
  }

  /** The host of a server that runs in this workspace have of their own: the same for all of them, since the server keeps it. */
  hostOf(source: ToolSource, root: string): ToolSourceHost {
    this.#hosts ??= new WeakMap()
    const known = this.#hosts.get(source)
    if (known?.roots[0] === root) return known
    const host = { roots: [root], warn: this.warn }
    this.#hosts.set(source, host)
    return host
  }

  /** The adapter of a reference; a model object is its own. */
  model(model: ModelRef | Model): Promise<Model> {
    if (typeof model !== 'string') return Promise.resolve(model)
    let loading = this.#models.get(model)
    if (loading === undefined) {
      loading = import('#providers/infer-model.js').then(({ inferModel }) => inferModel(model))
      this.#models.set(model, loading)
      // The next run tries again.
      loading.catch(() => this.#models.delete(model))
    }
    return loading
  }

  /** Checks that a quotation is in its source. */
  async evidenceCheck(sources: EvidenceSources): Promise<CheckEvidence> {
    const { evidenceCheck } = await import('#toolbox/evidence-check.js')
    return evidenceCheck(sources)
  }

  async close(): Promise<void> {
    const sources = [...this.#sources.values()]
    const ended = await Promise.allSettled(sources.map(async (source) => source.close(this.host)))
    const closed = await Promise.allSettled([...this.#models.values()].map(closeLoaded))
    ended.forEach((result, index) => {
      if (result.status === 'rejected') throw closeError(`server \`${sources[index]?.id ?? ''}\``, result.reason)
    })
    for (const result of closed) if (result.status === 'rejected') throw closeError('the model', result.reason)
  }
}

/** A run asks its servers. */
interface Asking {
  readonly signal: AbortSignal
  /** The lists that it has; null at first. */
  readonly before: Offer['servers'] | null
  /** The host that a server receives, by its place in the list. */
  readonly hostOf: (index: number) => ToolSourceHost
  readonly warn: (message: string) => void
}

const MOST_WAITING = 20

/** The same list each time, which means that nothing has changed. */
const NO_TOOLS: readonly ToolSpec[] = []

function closeError(what: string, cause: unknown): HarnessError {
  if (cause instanceof HarnessError) return cause
  return new HarnessError('error', `\`close\` of ${what} failed: ${messageOf(cause)}`, { cause })
}

function requiredSourceError({ id }: ToolSource, cause: unknown): HarnessError {
  if (cause instanceof HarnessError) return cause
  return new HarnessError('error', `\`${id}\` cannot be used, and is required: ${messageOf(cause)}`, { cause })
}

async function closeLoaded(loading: Promise<Model>): Promise<void> {
  const model = await loading.catch(() => undefined)
  await model?.close?.()
}

/** How the programs of a tool are to be confined; null if not at all, or if the tool says nothing. */
function sandboxModeOf({ sandbox = 'off' }: ToolSpec, ofHarness: SandboxMode): 'auto' | 'required' | null {
  const mode = sandbox === 'harness' ? ofHarness : sandbox
  return mode === 'off' ? null : mode
}

/** Says that the workspace of the built-in tools does not exist; null if it does. */
export function missingRoot({ root, builtinTools }: Config<unknown>): string | null {
  if (builtinTools.length === 0 || nodeModule('node:fs')?.existsSync(root) !== false) return null
  return `The workspace ${root} does not exist: its tools find nothing until something is written there. Check \`root\`.`
}

/** For tools that want a sandbox which this machine does not have; null if all is well. */
export function sandboxWarning(
  tools: readonly ToolSpec[],
  ofHarness: SandboxMode,
  state: { readonly problem: string | undefined } | null,
): string | null {
  if (state?.problem === undefined) return null
  const toolsInMode = (mode: 'auto' | 'required'): string =>
    tools.flatMap((tool) => (sandboxModeOf(tool, ofHarness) === mode ? [`\`${tool.name}\``] : [])).join(', ')
  const [open, refused] = [toolsInMode('auto'), toolsInMode('required')]
  const texts = [
    `This machine has no sandbox (${state.problem}).`,
    ...(open === '' ? [] : [`Programs of ${open} run with all rights of this process and can read its environment.`]),
    ...(refused === '' ? [] : [`Programs of ${refused} are not started.`]),
  ]
  return texts.join(' ')
}
