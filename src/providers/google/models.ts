import type { HostedTool, ModelCapabilities, ReasoningEffort } from '#core/model-session.js'
import type { KnownFormat } from '../http/wire-format.js'

/** The provider's name in entries, native parts, `providerOptions`, prices and events. */
export const PROVIDER = 'google'

/** What is known of `generateContent` for a model before its format is loaded. */
export function knownContent(id: string): Omit<KnownFormat, 'compactor'> {
  const path = modelPath(id)
  return {
    path: `/${path}:generateContent`,
    conversationField: 'contents',
    requestBytes: 20_000_000,
    counter: {
      path: `/${path}:countTokens`,
      fields: ['contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig', 'cachedContent'],
      request: (fields) => ({ generateContentRequest: { model: path, ...fields } }),
      answer: 'totalTokens',
    },
  }
}

/** `models/…`, unless the id names another collection, such as `tunedModels/…`. */
export function modelPath(id: string): string {
  const path = /\//.test(id) ? id : `models/${id}`
  return encodeURI(path).replace(/[?#]/g, encodeURIComponent)
}

export type Level = 'MINIMAL' | 'LOW' | 'MEDIUM' | 'HIGH'

/** How the thinking of a family of models is set. */
type ThinkingControl =
  | { readonly by: 'none' }
  /** By a number of tokens; 0 turns it off if that is possible. */
  | { readonly by: 'budget'; readonly least: number; readonly most: number; readonly canStop: boolean }
  /** By one of a few words. It cannot be turned off. */
  | { readonly by: 'level'; readonly levels: readonly Level[] }

export interface Family {
  readonly ids: RegExp
  readonly thinking: ThinkingControl
  /** It thinks unless a request says otherwise. */
  readonly byDefault: boolean
  /**
   * The third generation: it refuses calls without thought signatures, takes media within results, and combines tools of its
   * own and schemas for the reply with functions.
   */
  readonly isThird: boolean
  readonly maxOutputTokens: number
  readonly hostedTools: readonly HostedTool['kind'][]
}

const NONE = { by: 'none' } as const
const FULL: readonly Level[] = ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH']
const WITHOUT_MINIMAL: readonly Level[] = ['LOW', 'MEDIUM', 'HIGH']
const LONG = 65_536

/** Google's own tools; a model that makes images makes them without one. */
const HOSTED = ['web_search', 'web_fetch', 'code_execution', 'file_search'] as const
const PICTURES = ['image_generation', 'web_search'] as const
const SECOND = { byDefault: false, isThird: false, maxOutputTokens: LONG, hostedTools: HOSTED } as const
const THIRD = { byDefault: true, isThird: true, maxOutputTokens: LONG, hostedTools: HOSTED } as const

function budget(least: number, most: number, canStop: boolean): ThinkingControl {
  return { by: 'budget', least, most, canStop }
}

/** The first match counts. Budgets and levels are those of Google's page on thinking. */
const FAMILIES: readonly Family[] = [
  {
    ...SECOND,
    ids: /gemini-(?:1|2\.0|pro(?:-vision)?$)|gemma|learnlm/,
    thinking: NONE,
    maxOutputTokens: 8192,
    hostedTools: [],
  },
  { ...SECOND, ids: /gemini-2\.5.*image/, thinking: NONE, maxOutputTokens: 32_768, hostedTools: PICTURES.slice(0, 1) },
  { ...SECOND, ids: /gemini-2\.5.*(?:tts|audio)/, thinking: NONE, maxOutputTokens: 32_768, hostedTools: [] },
  { ...SECOND, ids: /gemini-2\.5-pro/, thinking: budget(128, 32_768, false), byDefault: true },
  { ...SECOND, ids: /gemini-2\.5-flash-lite/, thinking: budget(512, 24_576, true) },
  { ...SECOND, ids: /gemini-2/, thinking: budget(128, 24_576, true), byDefault: true },
  { ...THIRD, ids: /image/, thinking: NONE, byDefault: false, maxOutputTokens: 32_768, hostedTools: PICTURES },
  { ...THIRD, ids: /tts|audio/, thinking: NONE, byDefault: false, maxOutputTokens: 32_768, hostedTools: [] },
  { ...THIRD, ids: /gemini-3-pro/, thinking: { by: 'level', levels: ['LOW', 'HIGH'] } },
  { ...THIRD, ids: /gemini-3(?:\.[1-5])?-flash/, thinking: { by: 'level', levels: FULL } },
]

/** An unknown id is taken for a newer model. */
const NEWER: Family = { ...THIRD, ids: /^/, thinking: { by: 'level', levels: WITHOUT_MINIMAL } }

export function modelFamily(id: string): Family {
  return FAMILIES.find(({ ids }) => ids.test(id)) ?? NEWER
}

const ACTIVE_EFFORTS: readonly ReasoningEffort[] = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/**
 * The known capabilities of the model `id`. The default mode for structured output is `tool`: the API enforces a part of JSON
 * Schema only, and refuses schemas that are too large for it.
 */
export function modelCapabilities(id: string): ModelCapabilities {
  const { thinking, maxOutputTokens, hostedTools } = modelFamily(id)
  const canStop = thinking.by === 'budget' && thinking.canStop
  return {
    supportsJsonSchemaOutput: true,
    nativeSchemas: 'closed',
    supportsTools: true,
    defaultStructuredOutputMode: 'tool',
    inputs: ['image', 'file', 'audio'],
    hostedTools,
    contextTokens: 1_048_576,
    maxOutputTokens,
    ...(thinking.by === 'none' && { reasoningEfforts: [] }),
    ...(thinking.by !== 'none' && !canStop && { reasoningEfforts: ACTIVE_EFFORTS }),
  }
}
