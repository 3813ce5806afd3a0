import type { Config } from './config.js'
import { HarnessError, messageOf } from '../contracts/errors.js'
import type { Model } from '../contracts/model.js'
import type { ModelRef } from '../contracts/model-reference.js'
import type { Offer } from '../run/core/frozen.js'
import type { EvidenceSources } from '../toolbox/evidence/sources.js'
import type { LoadedSkills } from '../toolbox/skills/load-skills.js'
import type { CheckEvidence } from '../tools/evidence.js'
import { withUniqueIds } from '../tools/source-ids.js'
import type { ToolSource, ToolSourceHost } from '../tools/source.js'
import type { ToolSpec } from '../tools/spec.js'

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

  /** The servers, each once and under an id of its own. */
  readonly sources: readonly ToolSource[]
  /** What went wrong while there was nobody to be told. */
  readonly #untold: string[] = []

  /** Tells the runs under way, or the next one. */
  readonly warn: (message: string) => void

  /** `warn` is told what goes wrong with skills and servers that a run can do without; false: nobody heard it. */
  constructor(config: Config<unknown>, warn: (message: string) => boolean) {
    this.#config = config
    this.sources = withUniqueIds(config.mcpServers)
    this.warn = (message) => {
      if (!warn(message) && this.#untold.length < MOST_UNTOLD) this.#untold.push(message)
    }
    this.#host = { roots: [config.root], warn: this.warn }
  }

  /** Warnings that the next run is to tell. */
  takeUntold(): readonly string[] {
    return this.#untold.splice(0)
  }

  builtinTools(): Promise<readonly ToolSpec[]> {
    const { builtinTools: names, subagents } = this.#config
    if (names.length === 0 && subagents === null) return Promise.resolve([])
    this.#builtinTools ??= import('../toolbox/builtin.js').then(({ builtinTools }) => builtinTools(names, subagents))
    return this.#builtinTools
  }

  /** Null where none were configured. */
  skills(): Promise<LoadedSkills | null> {
    const { skills, root } = this.#config
    if (skills === null) return Promise.resolve(null)
    this.#skills ??= import('../toolbox/skills/load-skills.js').then(async ({ loadSkills }) => {
      const loaded = await loadSkills(skills, root)
      for (const warning of loaded.warnings) this.#host.warn(warning)
      return loaded
    })
    // What could not be loaded is tried again by the next run.
    this.#skills.catch(() => (this.#skills = null))
    return this.#skills
  }

  /**
   * The tools that each server offers now; the very same lists while nothing has changed. Of a server that fails `warn` is
   * told: then it offers what it did `before`, at first nothing; one that is required must not fail at first.
   */
  serverTools(
    signal: AbortSignal,
    before: Offer['servers'] | null,
    warn: (message: string) => void,
  ): Promise<Offer['servers']> {
    return Promise.all(
      this.sources.map(async (source, index) => {
        try {
          return await source.tools(this.#host, signal)
        } catch (error) {
          signal.throwIfAborted()
          const known = before?.[index]
          if (source.required && known === undefined) throw failedSource(source, error)
          const left = known === undefined || known.length === 0 ? 'is left out' : 'cannot tell what it offers now'
          warn(`\`${source.id}\` ${left}: ${messageOf(error)}`)
          return known ?? NO_TOOLS
        }
      }),
    )
  }

  /** The adapter of a reference; a model object is its own. */
  model(model: ModelRef | Model): Promise<Model> {
    if (typeof model !== 'string') return Promise.resolve(model)
    let loading = this.#models.get(model)
    if (loading === undefined) {
      loading = import('../providers/infer.js').then(({ inferModel }) => inferModel(model))
      this.#models.set(model, loading)
      // What could not be loaded is tried again by the next run.
      loading.catch(() => this.#models.delete(model))
    }
    return loading
  }

  /** Says of a quotation whether it stands where it is said to. */
  async evidenceCheck(sources: EvidenceSources): Promise<CheckEvidence> {
    const { evidenceCheck } = await import('../toolbox/evidence/index.js')
    return evidenceCheck(sources)
  }

  async close(): Promise<void> {
    await Promise.all(this.sources.map((source) => source.close(this.#host)))
    const closed = await Promise.allSettled([...this.#models.values()].map(closeLoaded))
    for (const result of closed) if (result.status === 'rejected') throw result.reason
  }
}

const MOST_UNTOLD = 20

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
