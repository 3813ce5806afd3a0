import type { HarnessError } from '../../contracts/errors.js'
import { invalidOptions } from '../../contracts/parse.js'
import { isObject } from '../../util/json.js'
import { shown } from '../../util/mismatch.js'
import { VERSIONS } from './versions.js'
import type { Version } from './versions.js'
import type { LanguageModelCall } from './wire.js'

/**
 * A language model of an AI SDK provider, such as `createGroq()('openai/gpt-oss-120b')`, as far as this library uses it:
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

/** A language model of a known version. Throws `invalid_options` for anything else. */
export function checkLanguageModel(given: unknown): { readonly model: CallableModel; readonly version: Version } {
  if (typeof given === 'string') throw invalid(`the string \`${given.slice(0, 100)}\`, which needs a gateway`)
  if (!isObject(given)) throw invalid(shown(given))
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
  throw invalidOptions(
    `Expected a language model of specification ${known}, got \`${String(specificationVersion)}\` (\`${modelId}\` of \`${provider}\`).`,
  )
}

function invalid(got: string): HarnessError {
  return invalidOptions(
    `Expected a language model of an AI SDK provider, such as \`createOpenAI()('gpt-5.5')\`, got ${got}.`,
  )
}
