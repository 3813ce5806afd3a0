import type { BuiltinToolName } from './options.js'
import type { Model } from './model/contracts.js'
import type { ModelRef } from './model/reference.js'
import type { ToolSpec } from './tools/spec.js'

/** What a harness loads when it is first needed: adapters and built-in tools, shared by all its runs, and its to close. */
export class Parts {
  readonly #names: readonly BuiltinToolName[]
  /** One set for all runs, so that they share what they know of the workspace. */
  #builtinTools: Promise<readonly ToolSpec[]> | null = null
  /** Models made from references, by reference. */
  readonly #models = new Map<ModelRef, Promise<Model>>()

  constructor(builtinTools: readonly BuiltinToolName[]) {
    this.#names = builtinTools
  }

  builtinTools(): Promise<readonly ToolSpec[]> {
    if (this.#names.length === 0) return Promise.resolve([])
    return (this.#builtinTools ??= import('./toolbox/builtin.js').then(({ builtinTools }) => builtinTools(this.#names)))
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
    const closed = await Promise.allSettled([...this.#models.values()].map(closeLoaded))
    for (const result of closed) if (result.status === 'rejected') throw result.reason
  }
}

async function closeLoaded(loading: Promise<Model>): Promise<void> {
  const model = await loading.catch(() => undefined)
  await model?.close?.()
}
