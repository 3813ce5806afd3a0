import { anthropic } from '#providers/anthropic/index.js'
import { openaiCompatible, openrouter } from '#providers/chat/index.js'
import { localUrl } from '#providers/infer.js'
import { openai } from '#providers/openai/index.js'
import { parseModelRef } from '#contracts/model-reference.js'
import type { ModelRef } from '#contracts/model-reference.js'
import { HarnessError } from '#contracts/errors.js'
import type { Model, ModelSettings, RequestConstants } from '#core/model-session.js'
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
  /** The constants of the latest requests: a session compares them by identity. */
  #latest: { readonly given: RequestConstants; readonly own: RequestConstants } | null = null

  constructor(option: CandidateOption, breaker: BreakerOptions) {
    const { model, settings = {} } = isWithSettings(option) ? option : { model: option }
    this.model = typeof model === 'string' ? modelOf(model) : checkedModel(model)
    this.#settings = settings
    this.breaker = new Breaker(breaker)
  }

  get name(): string {
    return `${this.model.provider}:${this.model.id}`
  }

  /** The constants for this candidate: with its own settings, and without an effort that it cannot take. */
  constants(given: RequestConstants): RequestConstants {
    if (this.#latest?.given === given) return this.#latest.own
    const settings = { ...given.settings, ...this.#settings }
    const efforts = this.model.capabilities.reasoningEfforts
    if (settings.reasoningEffort !== undefined && efforts?.includes(settings.reasoningEffort) === false)
      delete (settings as { reasoningEffort?: unknown }).reasoningEffort
    const own = { ...given, settings }
    this.#latest = { given, own }
    return own
  }
}

/** A model by its reference. A composed model says at once what it can, so the adapters are loaded with this module. */
function modelOf(ref: ModelRef): Model {
  const { provider, id, baseUrl } = parseModelRef(ref)
  switch (provider) {
    case 'anthropic':
      return anthropic(id)
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
