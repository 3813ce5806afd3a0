import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { OPENAI_ACCOUNT } from '../wire/credentials.js'
import type { ServerSpec } from '../wire/wire-model.js'
import { countIn, listIn, objectsIn } from '../wire/wire-fields.js'

/** What an API answers: the vectors in the order of the texts, as far as they are vectors. */
export interface EmbeddingAnswer {
  readonly vectors: readonly (readonly unknown[])[]
  /** Null if the server does not report it. */
  readonly inputTokens: number | null
}

/** An API for embeddings as functions. */
export interface EmbeddingApi {
  readonly server: Omit<ServerSpec, 'options'>
  readonly path: string
  /** The most texts of a request, and the most characters of all of them: at least as many as tokens. */
  readonly mostTexts: number
  readonly mostCharacters: number
  request(texts: readonly string[], dimensions: number | undefined): JsonObject
  answer(body: unknown): EmbeddingAnswer
}

type Server = Omit<EmbeddingApi['server'], 'auth' | 'clientCall'>

const SERVERS = {
  openai: {
    provider: 'openai',
    defaultBaseUrl: 'https://api.openai.com/v1',
    baseUrlVariable: 'OPENAI_BASE_URL',
    apiKeyVariable: 'OPENAI_API_KEY',
    accountHeaders: OPENAI_ACCOUNT,
  },
  openrouter: {
    provider: 'openrouter',
    defaultBaseUrl: 'https://openrouter.ai/api/v1',
    baseUrlVariable: 'OPENROUTER_BASE_URL',
    apiKeyVariable: 'OPENROUTER_API_KEY',
  },
  local: {
    provider: 'openai-compatible',
    defaultBaseUrl: 'http://127.0.0.1:11434/v1',
    baseUrlVariable: 'THINHARNESS_LOCAL_URL',
    apiKeyVariable: 'OPENAI_COMPATIBLE_API_KEY',
    keyOptional: true,
  },
} as const satisfies Readonly<Record<string, Server>>

/** OpenAI's API, and that of compatible servers; `baseUrl` is that of the reference. It takes at most 300,000 tokens in a request. */
export function openAiEmbeddings(name: keyof typeof SERVERS, id: string, baseUrl: string | null): EmbeddingApi {
  const { baseUrlVariable, ...named } = SERVERS[name]
  const server = baseUrl === null ? { ...named, baseUrlVariable } : { ...named, defaultBaseUrl: baseUrl }
  const bearer = (key: string): Readonly<Record<string, string>> => ({ authorization: `Bearer ${key}` })
  return {
    server: { ...server, auth: bearer, clientCall: '' },
    path: '/embeddings',
    mostTexts: 512,
    mostCharacters: 300_000,
    request: (texts, dimensions) => ({
      model: id,
      input: [...texts],
      encoding_format: 'float',
      ...(dimensions !== undefined && { dimensions }),
    }),
    answer(body) {
      const { data, usage } = isObject(body) ? body : {}
      const sorted = objectsIn(data).toSorted((one, other) => Number(one['index'] ?? 0) - Number(other['index'] ?? 0))
      const inputTokens = isObject(usage) ? countIn(usage['prompt_tokens']) : null
      return { vectors: sorted.map(({ embedding }) => listIn(embedding)), inputTokens }
    },
  }
}

/** Gemini's API. It takes 100 texts in a request. */
export function geminiEmbeddings(id: string): EmbeddingApi {
  const model = id.includes('/') ? id : `models/${id}`
  return {
    server: {
      provider: 'google',
      defaultBaseUrl: 'https://generativelanguage.googleapis.com/v1beta',
      baseUrlVariable: 'GEMINI_BASE_URL',
      apiKeyVariable: 'GEMINI_API_KEY',
      auth: (key) => ({ 'x-goog-api-key': key }),
      clientCall: '',
    },
    path: `/${encodeURI(model)}:batchEmbedContents`,
    mostTexts: 100,
    mostCharacters: 300_000,
    request: (texts, dimensions) => ({
      requests: texts.map((text) => ({
        model,
        content: { parts: [{ text }] },
        ...(dimensions !== undefined && { outputDimensionality: dimensions }),
      })),
    }),
    answer(body) {
      const { embeddings, usageMetadata } = isObject(body) ? body : {}
      const inputTokens = isObject(usageMetadata) ? countIn(usageMetadata['promptTokenCount']) : null
      // Only vectors of the full length come with the length 1.
      return { vectors: objectsIn(embeddings).map(({ values }) => unitVector(listIn(values))), inputTokens }
    },
  }
}

function unitVector(values: readonly unknown[]): readonly unknown[] {
  const length = Math.sqrt(values.reduce<number>((sum, value) => sum + Number(value) ** 2, 0))
  return length > 0 && Number.isFinite(length) ? values.map((value) => Number(value) / length) : values
}
