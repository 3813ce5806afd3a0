import type { Model, RequestConstants, ToolDefinition } from '#core/model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import { inferModel } from '#providers/infer-model.js'
import { estimateEntry, estimateText, entryTokens } from '#contracts/estimate.js'

export interface CountOptions {
  /** The system prompt. Default: none. */
  readonly instructions?: string | undefined
  /** The tools of the request. Default: none. */
  readonly tools?: readonly ToolDefinition[] | undefined
  /** False: nothing is sent to the provider. Default true. */
  readonly ask?: boolean | undefined
  /** Aborts the request to the provider's counter. Default: never. */
  readonly signal?: AbortSignal | undefined
}

export interface TokenCount {
  readonly tokens: number
  /**
   * `provider`: its own counter. `tokenizer`: the package `gpt-tokenizer`, if it is installed, for models of OpenAI; exact for
   * text. `estimate`: by the length of the text, corrected by the usage that the provider has reported in the conversation.
   */
  readonly by: 'provider' | 'tokenizer' | 'estimate'
}

/**
 * Counts the input tokens of a request: by the counter of the provider if it has one (Anthropic, OpenAI's Responses API), else
 * by a tokenizer, else as an estimate. A counter that cannot be reached is passed over. `content` is a text or entries.
 *
 * @example
 * const { tokens, by } = await countTokens('anthropic:claude-sonnet-5', result.transcript)
 */
export async function countTokens(
  model: ModelRef | Model,
  content: string | readonly TranscriptEntry[],
  options: CountOptions = {},
): Promise<TokenCount> {
  const asked = typeof model === 'string' ? await inferModel(model) : model
  try {
    const entries = typeof content === 'string' ? [textMessage(content)] : content
    return (
      (await byProvider(asked, entries, options)) ??
      (await byTokenizer(asked, entries, options)) ??
      estimateTokens(entries, options)
    )
  } finally {
    if (asked !== model) await asked.close?.()
  }
}

function textMessage(text: string): TranscriptEntry {
  return { id: 'e1', at: new Date(0).toISOString(), role: 'user', content: [{ type: 'text', text }] }
}

async function byProvider(
  model: Model,
  entries: readonly TranscriptEntry[],
  { instructions = '', tools = [], ask = true, signal = new AbortController().signal }: CountOptions,
): Promise<TokenCount | null> {
  if (!ask || model.countTokens === undefined || entries.length === 0) return null
  const constants: RequestConstants = { instructions, tools, structuredOutput: null, settings: {} }
  try {
    return { tokens: await model.countTokens(entries, constants, { signal }), by: 'provider' }
  } catch {
    signal.throwIfAborted()
    return null
  }
}

/** Tokens of the definitions and the system prompt. */
function headTokens({ instructions = '', tools = [] }: CountOptions, ofText: (text: string) => number): number {
  const definitions = tools.map(({ name, description, parameters }) => ({ name, description, parameters }))
  return ofText(instructions) + (definitions.length === 0 ? 0 : ofText(JSON.stringify(definitions)))
}

async function byTokenizer(
  { provider, id }: Model,
  entries: readonly TranscriptEntry[],
  options: CountOptions,
): Promise<TokenCount | null> {
  const name = id.slice(id.lastIndexOf('/') + 1)
  if (provider !== 'openai' && !/^(gpt-|o\d|chatgpt)/.test(name)) return null
  try {
    const { countTokens: count } = /^gpt-(3|4(?![o.\d]))/.test(name)
      ? await import('gpt-tokenizer/encoding/cl100k_base')
      : await import('gpt-tokenizer/encoding/o200k_base')
    // Text that looks like a mark of the model is text.
    const ofText = (text: string): number => count(text, { disallowedSpecial: new Set() })
    const tokens = entries.reduce((sum, entry) => sum + entryTokens(entry, ofText), headTokens(options, ofText))
    return { tokens, by: 'tokenizer' }
  } catch {
    return null
  }
}

/** Below, a ratio says too little: the provider adds some hundred tokens of its own. */
const ENOUGH = 500

/** A reported length, and the estimate of the same entries. */
interface Known {
  readonly tokens: number
  readonly ratio: number
  readonly at: number
}

/** Null for a request under a view that shows less: it says nothing about these entries. */
function knownBy(tokens: number, at: number): Known | null {
  if (at < ENOUGH) return { tokens, ratio: 1, at }
  const ratio = tokens / at
  return ratio > 0.5 && ratio < 2.5 ? { tokens, ratio, at } : null
}

function estimateTokens(entries: readonly TranscriptEntry[], options: CountOptions): TokenCount {
  const head = headTokens(options, estimateText)
  let sum = head
  let known: Known | null = null
  for (const entry of entries) {
    const reported = entry.role === 'assistant' ? entry.usage.inputTokens : null
    // A reply from a cache has none.
    if (reported !== null && reported > 0) known = knownBy(reported, sum) ?? known
    sum += estimateEntry(entry)
  }
  const tokens = known === null ? sum : known.tokens + (sum - known.at) * known.ratio
  return { tokens: Math.ceil(tokens), by: 'estimate' }
}
