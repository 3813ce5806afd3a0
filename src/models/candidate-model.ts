import { anthropic } from '#providers/anthropic/index.js'
import { openaiCompatible, openrouter } from '#providers/chat/index.js'
import { gemini } from '#providers/google/index.js'
import { localUrl } from '#providers/infer-model.js'
import { openai } from '#providers/openai/index.js'
import { parseModelRef } from '#contracts/model-reference.js'
import type { ModelRef } from '#contracts/model-reference.js'
import { HarnessError } from '#contracts/errors.js'
import type { ModelRun } from '#contracts/attempt.js'
import type { Model, ModelSession, ModelSettings, RequestConstants } from '#core/model-session.js'
import { isObject } from '#util/json.js'
import { shownValue } from '#util/mismatch.js'
import { Breaker } from './breaker.js'
import type { BreakerOptions } from './breaker.js'

/** A model of several: itself, a reference, or either with settings of its own. */
export type CandidateOption =
  ModelRef | Model | { readonly model: ModelRef | Model; readonly settings?: ModelSettings | undefined }

/** One of the models that a composed model is made of. */
export class CandidateModel {
  readonly model: Model
  readonly breaker: Breaker
  readonly #settings: ModelSettings
  /** By those that were given, since a session compares them by identity. */
  readonly #constants = new WeakMap<RequestConstants, RequestConstants>()

  constructor(option: CandidateOption, breaker: BreakerOptions) {
    const { model, settings = {} } = isWithSettings(option) ? option : { model: option }
    this.model = modelOf(model)
    this.#settings = settings
    this.breaker = new Breaker(breaker)
  }

  get name(): string {
    return `${this.model.provider}:${this.model.id}`
  }

  /** The constants for this candidate: with its own settings, and without an effort that it cannot take. */
  constants(given: RequestConstants): RequestConstants {
    const known = this.#constants.get(given)
    if (known !== undefined) return known
    const settings = { ...given.settings, ...this.#settings }
    if (this.leftOut(given) !== null) delete (settings as { reasoningEffort?: unknown }).reasoningEffort
    const own = { ...given, settings }
    this.#constants.set(given, own)
    return own
  }

  /** Which option is left out for this candidate, as a sentence; null if it takes all of them. */
  leftOut({ settings }: RequestConstants): string | null {
    const { reasoningEffort } = { ...settings, ...this.#settings }
    const { reasoningEfforts } = this.model.capabilities
    if (reasoningEffort === undefined || reasoningEfforts?.includes(reasoningEffort) !== false) return null
    const taken = reasoningEfforts.map((each) => `\`${each}\``).join(', ')
    const reason = taken === '' ? 'which is no reasoning model' : `which takes ${taken}`
    return `The setting \`reasoningEffort: '${reasoningEffort}'\` was left out for \`${this.name}\`, ${reason}.`
  }
}

/** The sessions of the candidates in one run. */
export class CandidateSessions {
  readonly #run: ModelRun | undefined
  readonly #open = new Map<CandidateModel, ModelSession>()

  constructor(run: ModelRun | undefined) {
    this.#run = run
  }

  /** Asks a candidate as its model asks. What it cannot take is left out, with a warning when it is asked for the first time. */
  turn(
    candidate: CandidateModel,
    ...[view, given, options]: Parameters<ModelSession['turn']>
  ): ReturnType<ModelSession['turn']> {
    let session = this.#open.get(candidate)
    if (session === undefined) {
      session = candidate.model.openSession(this.#run)
      this.#open.set(candidate, session)
      const leftOut = candidate.leftOut(given)
      if (leftOut !== null) options.warn?.(leftOut)
    }
    return session.turn(view, candidate.constants(given), options)
  }

  close(): void {
    for (const session of this.#open.values()) session.close?.()
  }
}

/** A model, as it is or by its reference. Throws `invalid_options` for anything else. */
export function modelOf(given: ModelRef | Model): Model {
  return typeof given === 'string' ? modelOfRef(given) : checkedModel(given)
}

/** A composed model says at once what it can, so the adapters are loaded with this module. */
function modelOfRef(ref: ModelRef): Model {
  const { provider, id, baseUrl } = parseModelRef(ref)
  switch (provider) {
    case 'anthropic':
      return anthropic(id)
    case 'google':
      return gemini(id)
    case 'openai':
      return openai(id)
    case 'openrouter':
      return openrouter(id)
    case 'local':
      return openaiCompatible(id, { baseUrl: baseUrl ?? localUrl() })
  }
}

function isWithSettings(option: CandidateOption): option is Exclude<CandidateOption, ModelRef | Model> {
  return isObject(option) && 'model' in option && !('openSession' in option)
}

function checkedModel(model: unknown): Model {
  if (isObject(model) && typeof model['openSession'] === 'function') return model as unknown as Model
  const message = `Expected a candidate to be a model, such as \`openai('gpt-5.5')\`, or \`provider:model\`, got ${shownValue(model)}.`
  throw new HarnessError('invalid_options', message)
}
