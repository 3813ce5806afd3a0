import type { ModelRun } from '#contracts/attempt.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import { messageOf } from '#contracts/errors.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { Model, ModelSession, ModelTurn, RequestConstants, TurnOptions } from '#core/model-session.js'
import { abortable } from '#util/abort.js'
import { modelOf } from '../candidate-model.js'
import { PassingModel } from '../passing-model.js'
import { askPrepaid } from '../prepaid.js'
import { kept, readReply, served } from './kept-reply.js'
import type { KeptReply } from './kept-reply.js'
import { Keys, questionIn } from './cache-key.js'
import type { Asked } from './cache-key.js'
import { checkCached } from './options.js'
import type { CachedOptions, CacheRequest } from './options.js'
import type { Resemblance } from './semantic.js'

/**
 * A model that answers a request which it has had before from a store: at once, and for nothing. The key has all that shapes a reply:
 * model, its options, instructions, tools, settings, schema, conversation, scope. Refused, cut and empty replies are not kept. A store
 * that fails lets the request through, with a warning. Forks ask the model.
 * @throws HarnessError `invalid_options` for no model or store, and for an option that it does not know.
 * @example
 * const model = cached('openai:gpt-5.5', { store: memoryCache({ entries: 1_000 }), ttlMs: 3_600_000 })
 * const harness = new Harness({ model })
 * await harness.run('What is the capital of France?')
 */
export function cached(model: ModelRef | Model, options: CachedOptions): Model {
  checkCached(options)
  return new CachedModel(modelOf(model), options)
}

class CachedModel extends PassingModel {
  readonly #cache: Cache

  constructor(inner: Model, options: CachedOptions) {
    super(inner)
    this.#cache = new Cache(inner, options)
  }

  openSession(run?: ModelRun): ModelSession {
    const session = this.inner.openSession(run)
    if (run?.isFork === true) return session
    return new CachedSession(session, this.#cache, new Keys(this.inner, this.#cache.options.normalise === true), run)
  }
}

/** What the sessions of a model share. */
class Cache {
  readonly options: CachedOptions
  /** The model that is asked. */
  readonly asked: Model
  readonly confirm: Model | null
  /** Requests on their way whose reply may be kept, by key: the same request waits for it. */
  readonly flights = new Map<string, Promise<KeptReply | null>>()

  constructor(asked: Model, options: CachedOptions) {
    this.asked = asked
    this.options = options
    this.confirm = options.semantic === undefined ? null : modelOf(options.semantic.confirm)
  }

  /** What it needs is loaded with the first request. */
  async resemblance(view: readonly TranscriptEntry[]): Promise<Resemblance | null> {
    const text = questionIn(view)
    const { semantic } = this.options
    if (text === null || semantic === undefined || this.confirm === null) return null
    const { Resemblance: Found } = await import('./semantic.js')
    return new Found(semantic, this.confirm, text)
  }
}

/** A request, and where its reply is kept. */
interface Place {
  readonly key: string
  readonly group: string | null
  readonly resemblance: Resemblance | null
  readonly options: TurnOptions
}

class CachedSession implements ModelSession {
  readonly #inner: ModelSession
  readonly #cache: Cache
  readonly #keys: Keys
  readonly #run: ModelRun | undefined

  constructor(inner: ModelSession, cache: Cache, keys: Keys, run: ModelRun | undefined) {
    this.#inner = inner
    this.#cache = cache
    this.#keys = keys
    this.#run = run
  }

  async turn(view: readonly TranscriptEntry[], constants: RequestConstants, options: TurnOptions): Promise<ModelTurn> {
    const ask = (): Promise<ModelTurn> =>
      askPrepaid(this.#cache.asked, options, (paid) => this.#inner.turn(view, constants, paid))
    // Its answer is on its way already.
    if (options.resume !== undefined) return ask()
    const place = await this.#placeOf(view, constants, options)
    if (place === null) return ask()
    const found = await this.#found(place)
    if (found !== null) return served(found, options)
    const flight = this.#cache.flights.get(place.key)
    if (flight !== undefined) {
      const reply = await abortable(flight, options.signal)
      return reply === null ? ask() : served(reply, options)
    }
    return this.#asked(place, ask)
  }

  close(): void {
    this.#inner.close?.()
  }

  /** Null if the cache cannot be asked. */
  async #placeOf(
    view: readonly TranscriptEntry[],
    constants: RequestConstants,
    options: TurnOptions,
  ): Promise<Place | null> {
    const { purpose = 'main', metadata = {}, labels = {} } = this.#run ?? {}
    const { scope = scopeOf, semantic } = this.#cache.options
    try {
      const asked: Asked = {
        ...{ view, constants, toolChoice: options.toolChoice, purpose },
        scope: scope({ purpose, metadata, labels }),
      }
      const resemblance = await this.#cache.resemblance(view)
      // Vectors of other models cannot be compared.
      const group = resemblance === null ? null : `${await this.#keys.groupOf(asked)}:${semantic?.embed.model ?? ''}`
      return { key: await this.#keys.keyOf(asked), group, resemblance, options }
    } catch (error) {
      options.warn?.(`The cache was not asked, since \`scope\` failed: ${messageOf(error)}`)
      return null
    }
  }

  async #found({ key, group, resemblance, options }: Place): Promise<KeptReply | null> {
    const { store } = this.#cache.options
    try {
      const text = await store.get(key)
      if (text !== null) return readReply(text)
      if (group === null || resemblance === null) return null
      return await resemblance.find(group, store, { options, run: this.#run })
    } catch (error) {
      options.signal.throwIfAborted()
      options.warn?.(`The cache failed, so the model is asked: ${messageOf(error)}`)
      return null
    }
  }

  async #asked(place: Place, ask: () => Promise<ModelTurn>): Promise<ModelTurn> {
    const { flights, options } = this.#cache
    let land: (reply: KeptReply | null) => void = () => undefined
    flights.set(place.key, new Promise((resolve) => (land = resolve)))
    let reply: KeptReply | null = null
    try {
      const turn = await ask()
      reply = kept(turn, options.toolCalls === true)
      if (reply !== null) await this.#keep(reply, place)
      return turn
    } finally {
      flights.delete(place.key)
      land(reply)
    }
  }

  async #keep(reply: KeptReply, { key, group, resemblance, options }: Place): Promise<void> {
    const { store, ttlMs } = this.#cache.options
    const expiresAt = ttlMs === undefined ? null : Date.now() + ttlMs
    const warn = (error: unknown): undefined => options.warn?.(`The cache failed: ${messageOf(error)}`) as undefined
    const question = await resemblance?.question(options.signal).catch(warn)
    try {
      const text = JSON.stringify(question === undefined ? reply : { ...reply, question })
      await store.set(key, text, { expiresAt, group: question === undefined ? null : group })
    } catch (error) {
      warn(error)
    }
  }
}

function scopeOf({ labels, metadata }: CacheRequest): string {
  const { tenant } = labels
  const { resourceId } = metadata
  if (tenant !== undefined) return `tenant:${tenant}`
  return typeof resourceId === 'string' ? `resource:${resourceId}` : ''
}
