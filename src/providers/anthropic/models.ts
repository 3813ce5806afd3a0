import type { ModelCapabilities, ReasoningEffort } from '../../contracts/model.js'

/** How a family of models is told how much to think. */
export interface ThinkingControl {
  /** `budget`: a number of tokens. `adaptive`: an effort, and the model decides. `none`: it cannot think. */
  readonly by: 'none' | 'budget' | 'adaptive'
  /** Whether it thinks when the request says nothing of it. */
  readonly byDefault: boolean
  /** What stops it; null: nothing does. */
  readonly off: 'disabled' | 'between_tools' | null
}

interface Family {
  readonly ids: RegExp
  readonly thinking: ThinkingControl
  /** Takes `output_config.format`. */
  readonly structuredOutput: boolean
}

/** The first that fits counts. Ids of Bedrock and Vertex hold the same names with something before and behind. */
const FAMILIES: readonly Family[] = [
  {
    ids: /claude-(?:instant|2|3-(?:opus|sonnet|haiku|5))/,
    thinking: { by: 'none', byDefault: false, off: 'disabled' },
    structuredOutput: false,
  },
  {
    ids: /claude-(?:opus|sonnet|haiku)-4-5/,
    thinking: { by: 'budget', byDefault: false, off: 'disabled' },
    structuredOutput: true,
  },
  {
    ids: /claude-(?:opus|sonnet)-4-[6-8]/,
    thinking: { by: 'adaptive', byDefault: false, off: 'disabled' },
    structuredOutput: true,
  },
  {
    ids: /claude-(?:3-7|opus-4|sonnet-4)/,
    thinking: { by: 'budget', byDefault: false, off: 'disabled' },
    structuredOutput: false,
  },
  {
    ids: /claude-(?:fable|mythos|opus-5-5)/,
    thinking: { by: 'adaptive', byDefault: true, off: null },
    structuredOutput: true,
  },
  {
    ids: /claude-sonnet-5-5/,
    thinking: { by: 'adaptive', byDefault: true, off: 'between_tools' },
    structuredOutput: true,
  },
]

/** What is taken of an id that no family has: that it is newer than this table. */
const NEWER: Omit<Family, 'ids'> = {
  thinking: { by: 'adaptive', byDefault: true, off: 'disabled' },
  structuredOutput: true,
}

const STEPS_OF_THOUGHT: readonly ReasoningEffort[] = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max']

export function thinkingControl(id: string): ThinkingControl {
  return familyOf(id).thinking
}

/**
 * What is known of the model `id`. Its mode for structured output stays `tool` by default: the provider enforces a part
 * of JSON Schema only, and refuses the rest.
 */
export function modelCapabilities(id: string): ModelCapabilities {
  const { thinking, structuredOutput } = familyOf(id)
  return {
    supportsJsonSchemaOutput: structuredOutput,
    nativeSchemas: 'closed',
    supportsTools: true,
    defaultStructuredOutputMode: 'tool',
    inputs: ['image', 'file'],
    ...(thinking.by === 'none' && { reasoningEfforts: [] }),
    ...(thinking.off === null && { reasoningEfforts: STEPS_OF_THOUGHT }),
  }
}

function familyOf(id: string): Omit<Family, 'ids'> {
  return FAMILIES.find(({ ids }) => ids.test(id)) ?? NEWER
}
