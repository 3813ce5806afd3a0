import { createHash } from 'node:crypto'
import type { ModelCapabilities, ReasoningEffort } from '../../contracts/model.js'
import type { JsonObject } from '../../util/json.js'
import type { ProviderOptions } from '../http/options.js'

/**
 * What is known of one AI SDK provider beside the specification, which leaves open what a provider does with the parts
 * of a prompt. A provider that is not known is asked for nothing that it might pass over without a word.
 */
export interface ProviderTraits {
  /** Keys under which it reads `providerOptions`: the first that is in use counts, else the last. */
  readonly optionKeys: readonly string[]
  /** Provider options of every call, unless others are given. */
  readonly defaults?: (promptCache: PromptCache) => JsonObject
  /** Provider options that ask for an effort, where the specification has no setting for it. */
  readonly effort?: (effort: ReasoningEffort, modelId: string) => JsonObject
  /** Provider options for an output schema that its strict mode cannot take. */
  readonly looseOutput?: JsonObject
  /** Provider options that would replace the output schema of the harness. */
  readonly outputOptions?: readonly string[]
  /** Says of a tool that its schema need not suit a strict mode. */
  readonly looseTools?: true
  /** Call ids that it takes from others. */
  readonly callIds?: RegExp
  /** Its API has no mark for a failed result, and the provider would write one into the text. */
  readonly plainErrors?: true
  /** Media types that it takes within a tool's result. */
  readonly resultMedia?: RegExp
  /** Provider metadata, of which reasoning must have one to be taken back. */
  readonly seals?: readonly string[]
  /** The API's word for a reply that a filter stopped; any other reply of that kind is a refusal. */
  readonly filterWord?: string
  readonly capabilities?: ModelCapabilities
}

export type PromptCache = Exclude<NonNullable<ProviderOptions['promptCache']>, boolean> | null

/** What is known of the provider that a language model names, such as `anthropic.messages`. */
export function traitsOf(provider: string): ProviderTraits {
  return KNOWN.find(({ names }) => names.test(provider))?.traits ?? UNKNOWN
}

const UNKNOWN: ProviderTraits = { optionKeys: [] }

const IMAGES_AND_PDF = /^(?:image\/|image$|application\/pdf$)/

const byEffortWord = (effort: ReasoningEffort): JsonObject => ({ reasoningEffort: effort })

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

/** The server keeps nothing: reasoning is sent back in its encrypted form. */
const OPENAI_RESPONSES: ProviderTraits = {
  ...OPENAI,
  defaults: (cache) => ({ store: false, ...openaiCache(cache) }),
  resultMedia: IMAGES_AND_PDF,
}

/** On other hosts; these refuse a mark for the cache at the top of a request. */
const ANTHROPIC_ELSEWHERE: ProviderTraits = {
  optionKeys: ['anthropic'],
  effort: anthropicThinking,
  callIds: /^[a-zA-Z0-9_-]+$/,
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

/** The API caches by itself; a key brings requests that begin alike to the same cache. */
function openaiCache(cache: PromptCache): JsonObject {
  return {
    ...(cache?.key !== undefined && { promptCacheKey: cache.key }),
    ...(cache?.ttl === '1h' && { promptCacheRetention: '24h' }),
  }
}

type Thought = Exclude<ReasoningEffort, 'none'>

/** Tokens to think with, for models that are told a number. */
const BUDGETS: Readonly<Record<Thought, number>> = {
  minimal: 1024,
  low: 4096,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 30_000,
}

/** Claude up to 4.5, which knows no effort. */
const CLAUDE_BY_BUDGET = /claude-(?:3-7|(?:opus|sonnet|haiku)-4(?!-[6-9]))/

/** Options of `@ai-sdk/anthropic` that ask a model to think as much as `effort` says. */
function anthropicThinking(effort: ReasoningEffort, modelId: string): JsonObject {
  if (effort === 'none') return { thinking: { type: 'disabled' } }
  if (CLAUDE_BY_BUDGET.test(modelId)) return { thinking: { type: 'enabled', budgetTokens: BUDGETS[effort] } }
  return { thinking: { type: 'adaptive', display: 'summarized' }, effort: effort === 'minimal' ? 'low' : effort }
}

/** Gemini up to 2.5, which knows no level. */
const GEMINI_BY_BUDGET = /gemini-2/

const LEVELS: Readonly<Record<ReasoningEffort, string>> = {
  none: 'minimal',
  minimal: 'minimal',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
}

/** Options of `@ai-sdk/google` that do the same. */
function googleThinking(effort: ReasoningEffort, modelId: string): JsonObject {
  if (!GEMINI_BY_BUDGET.test(modelId)) return { thinkingConfig: { thinkingLevel: LEVELS[effort] } }
  return { thinkingConfig: { thinkingBudget: effort === 'none' ? 0 : Math.min(BUDGETS[effort], 24_576) } }
}

/** The ids that most APIs take. */
const COMMON_IDS = /^[\x21-\x7e]{1,64}$/

/** `callId` as the provider takes it: unchanged where it is, else a digest of it, so that a call and its result agree. */
export function promptCallId(callId: string, { callIds = COMMON_IDS }: ProviderTraits): string {
  if (callIds.test(callId)) return callId
  return `call_${createHash('sha256').update(callId).digest('hex').slice(0, 32)}`
}
