import type { ModelRun } from '#contracts/attempt.js'
import type { Model, ModelCapabilities, ModelSession, RequestConstants } from '#core/model-session.js'

/** Which window a model of several has. */
export type ComposedWindow = 'smallest' | 'first'

/**
 * A model of several: its provider and id are those of the first, and it can what they all can. What one provider wrote in a form
 * of its own, another one cannot read: so `compact` exists only if all are of one provider.
 */
export abstract class ComposedModel implements Model {
  readonly provider: string
  readonly id: string
  readonly capabilities: ModelCapabilities
  readonly candidates: NonNullable<Model['candidates']>
  readonly reserves = true
  readonly countTokens: Model['countTokens']
  readonly compact: Model['compact']
  readonly #models: readonly Model[]

  constructor(models: readonly Model[], window: ComposedWindow = 'smallest') {
    const [first] = models
    this.provider = first?.provider ?? ''
    this.id = first?.id ?? ''
    this.capabilities = capabilitiesOf(models, window)
    this.candidates = leavesOf(models)
    const counter = models.find(({ countTokens }) => countTokens !== undefined)
    this.countTokens = counter?.countTokens?.bind(counter)
    const isOneProvider = models.every(({ provider }) => provider === this.provider)
    this.compact = isOneProvider ? first?.compact?.bind(first) : undefined
    this.#models = models
  }

  abstract openSession(run?: ModelRun): ModelSession

  /** Its models, and the constants with which each is asked. */
  abstract asks(constants: RequestConstants): readonly { readonly model: Model; readonly constants: RequestConstants }[]

  /** Throws if none of them can be asked. */
  check(): void {
    const errors = this.#models.flatMap((model) => {
      try {
        model.check?.()
        return []
      } catch (error) {
        return [error]
      }
    })
    if (errors.length === this.#models.length) throw errors[0]
  }

  /** Rejects if none of them can be reached. */
  async connect(): Promise<void> {
    await Promise.any(this.#models.map(async (model) => model.connect?.()))
  }
}

/**
 * What a model of several can do: what all of them can, and options and inputs that any of them takes. The smallest window, so that
 * the conversation stays usable for each; `first`: that of the first.
 */
function capabilitiesOf(models: readonly Model[], window: ComposedWindow): ModelCapabilities {
  const all = models.map(({ capabilities }) => capabilities)
  const every = (can: (each: ModelCapabilities) => boolean): boolean => all.every(can)
  const [first = {}] = all
  const modes = new Set(all.map(({ defaultStructuredOutputMode = 'tool' }) => defaultStructuredOutputMode))
  const searches = new Set(all.map(({ toolSearch = 'none' }) => toolSearch))
  const windows = window === 'first' ? [first.contextTokens] : all.map(({ contextTokens }) => contextTokens)
  return {
    supportsJsonSchemaOutput: every(({ supportsJsonSchemaOutput = false }) => supportsJsonSchemaOutput),
    supportsTools: every(({ supportsTools = true }) => supportsTools),
    nativeSchemas: every(({ nativeSchemas = 'any' }) => nativeSchemas === 'any') ? 'any' : 'closed',
    permissiveNativeOverride: every(({ permissiveNativeOverride = false }) => permissiveNativeOverride),
    defaultStructuredOutputMode: modes.size === 1 ? [...modes][0] : 'tool',
    reasoningEfforts: union(all.map(({ reasoningEfforts }) => reasoningEfforts)),
    inputs: union(all.map(({ inputs }) => inputs)),
    hostedTools: union(all.map(({ hostedTools }) => hostedTools)),
    maxOutputTokens: most(all.map(({ maxOutputTokens }) => maxOutputTokens)),
    contextTokens: least(windows),
    requestBytes: least(models.map(({ requestBytes, capabilities }) => capabilities.requestBytes ?? requestBytes)),
    toolSearch: searches.size === 1 ? [...searches][0] : searches.has('none') ? 'none' : 'parameters',
    longCacheWrites: all.some(({ longCacheWrites = true }) => longCacheWrites),
  }
}

/** The models that may answer: those of a candidate that is itself made of others are its own. */
function leavesOf(models: readonly Model[]): NonNullable<Model['candidates']> {
  return models.flatMap((model) => model.candidates ?? [model])
}

/** Unknown if one is unknown: then anything is passed on. */
function union<T>(lists: readonly (readonly T[] | undefined)[]): readonly T[] | undefined {
  return lists.includes(undefined) ? undefined : [...new Set(lists.flatMap((list) => list ?? []))]
}

function least(numbers: readonly (number | undefined)[]): number | undefined {
  const known = numbers.filter((each) => each !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}

/** Unknown if one is unknown. */
function most(numbers: readonly (number | undefined)[]): number | undefined {
  const known = numbers.filter((each) => each !== undefined)
  return known.length < numbers.length ? undefined : Math.max(...known)
}
