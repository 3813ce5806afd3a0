import type { ModelCapabilities, ReasoningEffort } from '#core/model-session.js'
import type { JsonObject } from '#util/json.js'
import type { ProviderOptions } from '../http/options.js'
import { acceptedCallId } from '../wire/call-ids.js'
import { anthropicThinking, googleThinking, byEffortWord } from './thinking.js'

/**
 * Known behavior of one AI SDK provider that the specification leaves open. An unknown provider is sent nothing that it
 * might silently ignore.
 */
export interface ProviderTraits {
  /** Keys of its `providerOptions`: the first one in use, or else the last. */
  readonly optionKeys: readonly string[]
  /** Provider options of every call, by default. */
  readonly defaults?: (promptCache: PromptCache) => JsonObject
  /** Provider options for an effort, if the specification has no setting for it. */
  readonly effort?: (effort: ReasoningEffort, modelId: string) => JsonObject
  /** Provider options for an output schema that its strict mode does not support. */
  readonly looseOutput?: JsonObject
  /** Provider options that would replace the output schema of the harness. */
  readonly outputOptions?: readonly string[]
  /** Tools are marked as not strict. */
  readonly looseTools?: true
  /** Call ids that it accepts. */
  readonly callIds?: RegExp
  /** Its API has no mark for a failed result, and the provider would write one into the text. */
  readonly plainErrors?: true
  /** Its API has a mark for a failed result, which the provider sets. */
  readonly errorFlag?: true
  /** Media types that it accepts within a tool's result. */
  readonly resultMedia?: RegExp
  /** Fields of provider metadata; reasoning needs one of them to be sent back. */
  readonly seals?: readonly string[]
  /** The API's word for a reply that a filter stopped; any other reply of that kind is a refusal. */
  readonly filterWord?: string
  readonly capabilities?: ModelCapabilities
}

export type PromptCache = Exclude<NonNullable<ProviderOptions['promptCache']>, boolean> | null

/** The traits of a provider by the name in its language model, such as `anthropic.messages`. */
export function traitsOf(provider: string): ProviderTraits {
  return KNOWN.find(({ names }) => names.test(provider))?.traits ?? UNKNOWN
}

const UNKNOWN: ProviderTraits = { optionKeys: [] }

const IMAGES_AND_PDF = /^(?:image\/|image$|application\/pdf$)/

const OPENAI: ProviderTraits = {
  optionKeys: ['azure', 'openai'],
  defaults: (cache) => openaiCache(cache),
  effort: byEffortWord,
  looseOutput: { strictJsonSchema: false },
  outputOptions: ['textFormat'],
  looseTools: true,
  callIds: /^[^]{1,64}$/,
  plainErrors: true,
  filterWord: 'content_filter',
  capabilities: { supportsJsonSchemaOutput: true, defaultStructuredOutputMode: 'native' },
}

/** The server stores nothing: reasoning is sent back in its encrypted form. */
const OPENAI_RESPONSES: ProviderTraits = {
  ...OPENAI,
  defaults: (cache) => ({ store: false, ...openaiCache(cache) }),
  resultMedia: IMAGES_AND_PDF,
}

/** On other hosts, which reject a `cacheControl` at the top of a request. */
const ANTHROPIC_ELSEWHERE: ProviderTraits = {
  optionKeys: ['anthropic'],
  effort: anthropicThinking,
  callIds: /^[a-zA-Z0-9_-]+$/,
  errorFlag: true,
  resultMedia: IMAGES_AND_PDF,
  seals: ['signature', 'redactedData'],
  capabilities: { supportsJsonSchemaOutput: true },
}

const ANTHROPIC: ProviderTraits = {
  ...ANTHROPIC_ELSEWHERE,
  defaults: (cache) =>
    cache === null ? {} : { cacheControl: { type: 'ephemeral', ...(cache.ttl === '1h' && { ttl: '1h' }) } },
}

const GOOGLE: ProviderTraits = {
  optionKeys: ['google'],
  effort: googleThinking,
  capabilities: { supportsJsonSchemaOutput: true },
}

const KNOWN: readonly { readonly names: RegExp; readonly traits: ProviderTraits }[] = [
  { names: /^(?:openai|azure(?:-openai)?)\.responses$/, traits: OPENAI_RESPONSES },
  { names: /^(?:openai|azure(?:-openai)?)\./, traits: OPENAI },
  { names: /^anthropic\./, traits: ANTHROPIC },
  { names: /\banthropic\./, traits: ANTHROPIC_ELSEWHERE },
  { names: /^google\./, traits: GOOGLE },
  { names: /^xai\./, traits: { optionKeys: ['xai'], effort: byEffortWord } },
  { names: /^groq\./, traits: { optionKeys: ['groq'], effort: byEffortWord } },
]

/** The API caches by itself; requests with the same key use the same cache. */
function openaiCache(cache: PromptCache): JsonObject {
  return {
    ...(cache?.key !== undefined && { promptCacheKey: cache.key }),
    ...(cache?.ttl === '1h' && { promptCacheRetention: '24h' }),
  }
}

/** The ids that most APIs accept. */
const COMMON_IDS = /^[\x21-\x7e]{1,64}$/

/** `callId` as the provider accepts it. */
export function promptCallId(callId: string, { callIds = COMMON_IDS }: ProviderTraits): string {
  return acceptedCallId(callId, callIds)
}
