import { HarnessError } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'
import { VERSIONS } from './versions.js'
import type { Version } from './versions.js'
import type { LanguageModelCall } from './wire.js'

/**
 * A language model of an AI SDK provider, such as `createGroq()('openai/gpt-oss-120b')`, as far as it is used here:
 * specification `v2` (AI SDK 5), `v3` (6) or `v4` (7).
 */
export interface AiSdkLanguageModel {
  readonly specificationVersion: string
  readonly provider: string
  readonly modelId: string
  doGenerate(options: never): PromiseLike<unknown>
  doStream(options: never): PromiseLike<unknown>
}

/** The same model, to be called. */
export interface CallableModel {
  doGenerate(options: LanguageModelCall): PromiseLike<unknown>
  doStream(options: LanguageModelCall): PromiseLike<unknown>
}

/** Refuses what is no language model of a version that is known. Throws `invalid_options`. */
export function checkLanguageModel(given: unknown): { readonly model: CallableModel; readonly version: Version } {
  if (typeof given === 'string') throw invalid(`the text \`${given.slice(0, 100)}\`: a gateway is needed for that`)
  if (!isObject(given)) throw invalid(given === null ? '`null`' : `a value of type \`${typeof given}\``)
  const { specificationVersion, modelId, provider } = given
  if (typeof given['doGenerate'] !== 'function' || typeof given['doStream'] !== 'function') {
    throw invalid('an object without `doGenerate` and `doStream`')
  }
  if (typeof modelId !== 'string' || typeof provider !== 'string') {
    throw invalid('one without a `provider` and a `modelId`')
  }
  const version = typeof specificationVersion === 'string' ? VERSIONS.get(specificationVersion) : undefined
  if (version !== undefined) return { model: given as unknown as CallableModel, version }
  const known = [...VERSIONS.keys()].map((name) => `\`${name}\``).join(', ')
  throw new HarnessError(
    'invalid_options',
    `Expected a language model of specification ${known}, got \`${String(specificationVersion)}\` (\`${modelId}\` of \`${provider}\`).`,
  )
}

function invalid(got: string): HarnessError {
  const message = `Expected a language model of an AI SDK provider, such as \`createOpenAI()('gpt-5.5')\`, got ${got}.`
  return new HarnessError('invalid_options', message)
}
