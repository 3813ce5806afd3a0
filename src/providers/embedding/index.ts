import { UNREPORTED_USAGE } from '#contracts/entry.js'
import { parseModelRef } from '#contracts/model-reference.js'
import type { ModelRef } from '#contracts/model-reference.js'
import { invalidOptions } from '#contracts/parse.js'
import { bytesOf } from '#util/bytes.js'
import { integer, partial } from '#util/validate.js'
import { errorWithin, providerError } from '../http/provider-errors.js'
import type { ProviderOptions } from '../http/options.js'
import { withRetries } from '../http/retry.js'
import { openTransport } from '../http/open-transport.js'
import type { Transport } from '../http/wire-format.js'
import { modelConnection } from '../wire/wire-model.js'
import { DEFAULT_MAX_RETRIES, parseModelOptions, PROVIDER_OPTIONS } from '../wire/options.js'
import { geminiEmbeddings, openAiEmbeddings } from './servers.js'
import type { EmbeddingApi, EmbeddingAnswer } from './servers.js'

/** As for models, where it applies. */
export interface EmbeddingOptions extends Pick<
  ProviderOptions,
  'apiKey' | 'baseUrl' | 'headers' | 'fetch' | 'dispatcher' | 'timeouts' | 'maxRetries' | 'extraBody'
> {
  /** Numbers of a vector, for a model that lets one choose. Default: the model's. */
  readonly dimensions?: number | undefined
}

/** What an embedder has used so far, in this process. */
export interface EmbeddingUsage {
  /** Requests that were answered. */
  readonly requests: number
  readonly texts: number
  /** As far as the provider reports them. */
  readonly inputTokens: number
}

/** Makes vectors of texts, in their order, all of one length. Rejects with a `HarnessError`, or with the reason of `signal`. */
export interface TextEmbedder {
  (
    texts: readonly string[],
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<readonly (readonly number[])[]>
  /** The reference that it was made with. */
  readonly model: string
  /** Numbers of a vector; undefined until the first answer, unless it was chosen. */
  readonly dimensions: number | undefined
  readonly usage: EmbeddingUsage
}

const OPTIONS = partial<EmbeddingOptions & Omit<ProviderOptions, keyof EmbeddingOptions>>({
  ...PROVIDER_OPTIONS,
  dimensions: integer(1),
})

/**
 * An embedder of OpenAI (`openai:`), Gemini (`google:`), OpenRouter or a compatible server (`local:NAME@http://…/v1`), for a memory,
 * a cache or a search over tools. Texts are sent in as few requests as the API allows, one after the other; failed ones are
 * repeated as those of models. Throws `invalid_options`, also for a provider without embeddings.
 *
 * @example
 * const embed = embedding('openai:text-embedding-3-small', { dimensions: 512 })
 * const memory = createMemory({ log, index: 'memory.db', embed })
 * const [vector] = await embed(['How high is the tide?'])
 * console.log(embed.model, vector?.length, embed.usage.inputTokens)
 */
export function embedding(ref: ModelRef, options: EmbeddingOptions = {}): TextEmbedder {
  const { dimensions, ...given } = parseModelOptions(OPTIONS, options, 'embedding')
  if (given.client !== undefined) throw invalidOptions('Expected `embedding` without `client`: use `fetch`.')
  const api = apiOf(ref)
  const { timeouts, maxRetries = DEFAULT_MAX_RETRIES } = given
  const over = modelConnection({ ...api.server, options: given })
  const transport = openTransport({ over, ...(timeouts !== undefined && { timeouts }) })
  const used = { requests: 0, texts: 0, inputTokens: 0 }
  let length = dimensions
  const embed = async (
    texts: readonly string[],
    { signal = new AbortController().signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<readonly (readonly number[])[]> => {
    const vectors: (readonly number[])[] = []
    for (const batch of batchesOf(texts, api)) {
      signal.throwIfAborted()
      const body = { ...given.extraBody, ...api.request(batch, dimensions) }
      const { vectors: found, inputTokens } = await withRetries(
        async () => ({ ...(await requestVectors(api, transport, { body, signal })), usage: UNREPORTED_USAGE }),
        { maxRetries, signal },
      )
      vectors.push(...checkedVectors(found, { wanted: batch.length, length: length ?? found[0]?.length, ref }))
      length = vectors[0]?.length
      used.requests += 1
      used.texts += batch.length
      used.inputTokens += inputTokens ?? 0
    }
    return vectors
  }
  return Object.defineProperties(embed, {
    model: { value: ref, enumerable: true },
    dimensions: { get: () => length, enumerable: true },
    usage: { get: () => ({ ...used }), enumerable: true },
  }) as TextEmbedder
}

function apiOf(ref: ModelRef): EmbeddingApi {
  const { provider, id, baseUrl } = parseModelRef(ref)
  switch (provider) {
    case 'google':
      return geminiEmbeddings(id)
    case 'openai':
    case 'openrouter':
    case 'local':
      return openAiEmbeddings(provider, id, baseUrl)
    case 'anthropic':
      throw invalidOptions(`Expected a provider with embeddings, such as \`openai:\` or \`google:\`, got \`${ref}\`.`)
  }
}

/** The texts in requests that the API takes. APIs refuse empty texts, so a space is sent for one. */
function batchesOf(texts: readonly string[], { mostTexts, mostCharacters }: EmbeddingApi): readonly string[][] {
  const batches: string[][] = []
  let characters = 0
  for (const given of texts) {
    const text = given === '' ? ' ' : given.toWellFormed()
    let last = batches.at(-1)
    if (last === undefined || last.length >= mostTexts || characters + text.length > mostCharacters) {
      batches.push((last = []))
      characters = 0
    }
    last.push(text)
    characters += text.length
  }
  return batches
}

interface EmbeddingRequest {
  readonly body: object
  readonly signal: AbortSignal
}

async function requestVectors(
  api: EmbeddingApi,
  transport: Transport,
  { body, signal }: EmbeddingRequest,
): Promise<EmbeddingAnswer> {
  const answer = await transport.send({ path: api.path, headers: {}, body: [bytesOf(JSON.stringify(body))], signal })
  const error = errorWithin(answer)
  if (error !== undefined) throw error
  return api.answer(answer)
}

interface WantedVectors {
  readonly wanted: number
  readonly length: number | undefined
  readonly ref: string
}

function checkedVectors(
  vectors: EmbeddingAnswer['vectors'],
  { wanted, length = 0, ref }: WantedVectors,
): readonly (readonly number[])[] {
  const isSound = (vector: readonly unknown[]): vector is readonly number[] =>
    vector.length === length && vector.every((value) => typeof value === 'number' && Number.isFinite(value))
  if (vectors.length === wanted && length > 0 && vectors.every(isSound)) return vectors
  const got = vectors.map((vector) => vector.length)
  throw providerError(
    `Expected ${wanted} vectors of ${length > 0 ? length : 'some'} numbers from \`${ref}\`, got ${got.length} of ${[...new Set(got)].join(', ') || 'none'}.`,
    { failure: 'server' },
  )
}
