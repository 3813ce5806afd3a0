import type { HarnessError } from '#contracts/errors.js'
import { invalidOptions } from '#contracts/parse.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { shownValue } from '#util/mismatch.js'

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

/** The same model, with callable methods. */
export interface CallableModel {
  doGenerate(call: LanguageModelCall): PromiseLike<unknown>
  doStream(call: LanguageModelCall): PromiseLike<unknown>
}

/** The fields of a request, and `abortSignal`. */
type LanguageModelCall = Readonly<Record<string, unknown>>

/** A language model of a known version. Throws `invalid_options` for anything else. */
export function checkLanguageModel(given: unknown): { readonly model: CallableModel; readonly version: Version } {
  if (typeof given === 'string') throw invalidModelError(`the string \`${given.slice(0, 100)}\`, which needs a gateway`)
  if (!isObject(given)) throw invalidModelError(shownValue(given))
  const { specificationVersion, modelId, provider } = given
  if (typeof given['doGenerate'] !== 'function' || typeof given['doStream'] !== 'function') {
    throw invalidModelError('an object without `doGenerate` and `doStream`')
  }
  if (typeof modelId !== 'string' || typeof provider !== 'string') {
    throw invalidModelError('one without a `provider` and a `modelId`')
  }
  const version = typeof specificationVersion === 'string' ? VERSIONS.get(specificationVersion) : undefined
  if (version !== undefined) return { model: given as unknown as CallableModel, version }
  const known = [...VERSIONS.keys()].map((name) => `\`${name}\``).join(', ')
  throw invalidOptions(
    `Expected a language model of specification ${known}, got ${shownValue(specificationVersion)} (\`${modelId}\` of \`${provider}\`).`,
  )
}

function invalidModelError(got: string): HarnessError {
  return invalidOptions(
    `Expected a language model of an AI SDK provider, such as \`createOpenAI()('gpt-5.5')\`, got ${got}.`,
  )
}

/** The content of a file: base64, or a URL. */
export type FileSource = { readonly data: string } | { readonly url: string }

/** A file as part of a prompt or of a tool's result. `mediaType` may be the kind only (`image`) if no more is known. */
export interface PromptFile {
  readonly source: FileSource
  readonly mediaType: string
  readonly name?: string
}

/** The differences between versions of the specification. */
export interface Version {
  /** The `data` of a file part. */
  fileData(source: FileSource): JsonValue
  /** The media type if only the kind is known. */
  anyOf(kind: string): string
  /** A file within a tool's result; null if the version has no form for it. */
  resultFile(file: PromptFile): JsonObject | null
  /** The type of a tool that the provider executes. */
  readonly hostedTool: 'provider-defined' | 'provider'
  /** A call has the setting `reasoning`. */
  readonly takesReasoning: boolean
  /** Kinds of content, other than text, reasoning and calls of the harness, that can be sent back in a reply. */
  readonly replayable: ReadonlySet<string>
}

const REPLAYABLE = ['file', 'tool-call', 'tool-result']

const V2: Version = {
  fileData: (source) => ('url' in source ? urlObject(source.url) : source.data),
  anyOf: (kind) => `${kind}/*`,
  resultFile: ({ source, mediaType }) => ('url' in source ? null : { type: 'media', data: source.data, mediaType }),
  hostedTool: 'provider-defined',
  takesReasoning: false,
  replayable: new Set(REPLAYABLE),
}

const V3: Version = {
  ...V2,
  hostedTool: 'provider',
  resultFile({ source, mediaType, name }) {
    const isImage = mediaType.startsWith('image')
    if ('url' in source) return isImage ? { type: 'image-url', url: source.url } : { type: 'file-url', url: source.url }
    if (isImage) return { type: 'image-data', data: source.data, mediaType }
    return { type: 'file-data', data: source.data, mediaType, ...(name !== undefined && { filename: name }) }
  },
}

const V4: Version = {
  fileData: taggedData,
  anyOf: (kind) => kind,
  resultFile: ({ source, mediaType, name }) => ({
    type: 'file',
    data: taggedData(source),
    mediaType,
    ...(name !== undefined && { filename: name }),
  }),
  hostedTool: 'provider',
  takesReasoning: true,
  replayable: new Set([...REPLAYABLE, 'reasoning-file', 'custom']),
}

function taggedData(source: FileSource): JsonObject {
  return 'url' in source ? { type: 'url', url: urlObject(source.url) } : { type: 'data', data: source.data }
}

/** The specification requires a `URL`: the only value of a prompt that is not JSON. */
function urlObject(url: string): JsonValue {
  return new URL(url) as unknown as JsonValue
}

/** The known versions, by `specificationVersion`. */
export const VERSIONS: ReadonlyMap<string, Version> = new Map([
  ['v2', V2],
  ['v3', V3],
  ['v4', V4],
])
