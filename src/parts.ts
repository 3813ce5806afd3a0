import type { Config } from './config.js'
import { HarnessError, messageOf } from './errors.js'
import type { Model } from './model/contracts.js'
import type { ModelRef } from './model/reference.js'
import type { LoadedSkills } from './toolbox/skills/load-skills.js'
import type { ToolSource, ToolSourceHost } from './tools/source.js'
import type { ToolSpec } from './tools/spec.js'

/**
 * What a harness loads when it is first needed, shared by all its runs, and its to close: adapters, built-in tools, skills,
 * and the connections of its servers.
 */
export class Parts {
  readonly #config: Config<unknown>
  readonly #host: ToolSourceHost
  /** One set for all runs, so that they share what they know of the workspace. */
  #builtinTools: Promise<readonly ToolSpec[]> | null = null
  #skills: Promise<LoadedSkills> | null = null
  /** Models made from references, by reference. */
  readonly #models = new Map<ModelRef, Promise<Model>>()

  /** `warn` is told what goes wrong with skills and servers that a run can do without. */
  constructor(config: Config<unknown>, warn: (message: string) => void) {
    this.#config = config
    this.#host = { roots: [config.root], warn }
  }

  builtinTools(): Promise<readonly ToolSpec[]> {
    const { builtinTools: names } = this.#config
    if (names.length === 0) return Promise.resolve([])
    return (this.#builtinTools ??= import('./toolbox/builtin.js').then(({ builtinTools }) => builtinTools(names)))
  }

  /** Null where none were configured. */
  skills(): Promise<LoadedSkills | null> {
    const { skills, root } = this.#config
    if (skills === null) return Promise.resolve(null)
    this.#skills ??= import('./toolbox/skills/load-skills.js').then(async ({ loadSkills }) => {
      const loaded = await loadSkills(skills, root)
      for (const warning of loaded.warnings) this.#host.warn(warning)
      return loaded
    })
    // What could not be loaded is tried again by the next run.
    this.#skills.catch(() => (this.#skills = null))
    return this.#skills
  }

  /**
   * The tools that each server offers now; the very same lists while nothing has changed. A server that fails is told of
   * and left out, unless it is required.
   */
  serverTools(signal: AbortSignal): Promise<readonly (readonly ToolSpec[])[]> {
    return Promise.all(this.#config.mcpServers.map((source) => this.#toolsOf(source, signal)))
  }

  /** The adapter of a reference; a model object is its own. */
  model(model: ModelRef | Model): Promise<Model> {
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

  async close(): Promise<void> {
    await Promise.all(this.#config.mcpServers.map((source) => source.close(this.#host)))
    const closed = await Promise.allSettled([...this.#models.values()].map(closeLoaded))
    for (const result of closed) if (result.status === 'rejected') throw result.reason
  }

  async #toolsOf(source: ToolSource, signal: AbortSignal): Promise<readonly ToolSpec[]> {
    try {
      return await source.tools(this.#host, signal)
    } catch (error) {
      signal.throwIfAborted()
      if (source.required) throw failedSource(source, error)
      this.#host.warn(`\`${source.id}\` is left out: ${messageOf(error)}`)
      return NO_TOOLS
    }
  }
}

/** The same list each time: nothing has changed. */
const NO_TOOLS: readonly ToolSpec[] = []

function failedSource({ id }: ToolSource, cause: unknown): HarnessError {
  if (cause instanceof HarnessError) return cause
  return new HarnessError('error', `\`${id}\` cannot be used, and is required: ${messageOf(cause)}`, { cause })
}

async function closeLoaded(loading: Promise<Model>): Promise<void> {
  const model = await loading.catch(() => undefined)
  await model?.close?.()
}
