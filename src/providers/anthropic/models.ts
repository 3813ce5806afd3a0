import { HarnessError } from '#contracts/errors.js'
import type { ModelCapabilities, ReasoningEffort } from '#core/model-session.js'
import { ANTHROPIC_HOSTED } from '../hosted/anthropic-tools.js'
import type { KnownFormat } from '../http/wire-format.js'

/** The provider's name in entries, native parts, `providerOptions` and events. */
export const PROVIDER = 'anthropic'

/** Tokens of one reply if no limit is set; the API requires one. */
export const MAX_TOKENS = 16_384

/** `2023-06-01` has `temperature`; `2026-10-21` rejects it. */
export type AnthropicApiVersion = '2023-06-01' | '2026-10-21'

/** What is known of the Messages API before its format is loaded. */
export const MESSAGES = {
  path: '/v1/messages',
  conversationField: 'messages',
  requestBytes: 32_000_000,
  counter: {
    path: '/v1/messages/count_tokens',
    fields: ['model', 'messages', 'system', 'tools', 'tool_choice', 'thinking', 'output_config', 'mcp_servers'],
  },
} satisfies KnownFormat

/** The same, with the compaction that the format will have. */
export const KNOWN: KnownFormat = { compactor: { path: '/v1/messages' }, ...MESSAGES }

/** Throws `invalid_options` if the API has no `temperature`. */
export function rejectTemperature(version: AnthropicApiVersion | null): void {
  if (version !== '2026-10-21') return
  throw new HarnessError(
    'invalid_options',
    `Version ${version} of Anthropic's API does not support \`temperature\`: omit it, or choose \`apiVersion: '2023-06-01'\`.`,
  )
}

/** How the thinking of a family of models is set. */
export interface ThinkingControl {
  /** `budget`: a number of tokens. `adaptive`: an effort, and the model decides. `none`: it cannot think. */
  readonly by: 'none' | 'budget' | 'adaptive'
  /** It thinks unless the request disables it. */
  readonly byDefault: boolean
  /** The type that disables it; null: it cannot be disabled. */
  readonly off: 'disabled' | 'between_tools' | null
}

interface Family {
  readonly ids: RegExp
  readonly thinking: ThinkingControl
  /** It accepts `output_config.format`, and has a search for deferred tools. */
  readonly structuredOutput: boolean
}

const NONE: ThinkingControl = { by: 'none', byDefault: false, off: 'disabled' }
const BUDGET: ThinkingControl = { by: 'budget', byDefault: false, off: 'disabled' }
const ADAPTIVE: ThinkingControl = { by: 'adaptive', byDefault: false, off: 'disabled' }
const ALWAYS: ThinkingControl = { by: 'adaptive', byDefault: true, off: null }
const BETWEEN_TOOLS: ThinkingControl = { by: 'adaptive', byDefault: true, off: 'between_tools' }

/** The first match counts. Ids of Bedrock and Vertex contain the same names. */
const FAMILIES: readonly Family[] = [
  { ids: /claude-(?:instant|2|3-(?:opus|sonnet|haiku|5))/, thinking: NONE, structuredOutput: false },
  { ids: /claude-(?:opus|sonnet|haiku)-4-5/, thinking: BUDGET, structuredOutput: true },
  { ids: /claude-(?:opus|sonnet)-4-[6-8]/, thinking: ADAPTIVE, structuredOutput: true },
  { ids: /claude-(?:3-7|opus-4|sonnet-4)/, thinking: BUDGET, structuredOutput: false },
  { ids: /claude-(?:fable|mythos|opus-5-5)/, thinking: ALWAYS, structuredOutput: true },
  { ids: /claude-sonnet-5-5/, thinking: BETWEEN_TOOLS, structuredOutput: true },
]

/** An unknown id is taken for a newer model. */
const NEWER: Family = { ids: /^/, thinking: { ...ADAPTIVE, byDefault: true }, structuredOutput: true }

function modelFamily(id: string): Family {
  return FAMILIES.find(({ ids }) => ids.test(id)) ?? NEWER
}

export function thinkingControl(id: string): ThinkingControl {
  return modelFamily(id).thinking
}

/** True if the model can be made to keep to the schema of a tool. */
export function hasStrictTools(id: string): boolean {
  return modelFamily(id).structuredOutput
}

const ACTIVE_EFFORTS: readonly ReasoningEffort[] = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/**
 * The known capabilities of the model `id`. The default mode for structured output is `tool`: the provider enforces only
 * a part of JSON Schema, and rejects the rest.
 */
export function modelCapabilities(id: string): ModelCapabilities {
  const { thinking, structuredOutput } = modelFamily(id)
  return {
    supportsJsonSchemaOutput: structuredOutput,
    nativeSchemas: 'closed',
    supportsTools: true,
    defaultStructuredOutputMode: 'tool',
    inputs: ['image', 'file'],
    ...(structuredOutput && { toolSearch: 'definitions' }),
    hostedTools: ANTHROPIC_HOSTED,
    ...(thinking.by === 'none' && { reasoningEfforts: [] }),
    ...(thinking.off === null && { reasoningEfforts: ACTIVE_EFFORTS }),
  }
}
