import type { KnownFormat } from '../http/wire-format.js'

/** Name of the provider in entries, events and native parts. */
export const PROVIDER = 'openai'

/** What is known of the Responses API before its format is loaded. */
export const RESPONSES = {
  path: '/responses',
  conversationField: 'input',
  requestBytes: 50_000_000,
  counter: {
    path: '/responses/input_tokens',
    fields: ['model', 'input', 'instructions', 'tools', 'tool_choice', 'text', 'reasoning', 'truncation'],
  },
} satisfies KnownFormat
export const KNOWN: KnownFormat = { compactor: { path: '/responses/compact' }, ...RESPONSES }

/** Kinds of input other than text. */
export type Inputs = readonly ('image' | 'file' | 'audio')[]

/** The inputs that the Responses API supports: no audio, with any model. */
export const API_INPUTS: Inputs = ['image', 'file']

/**
 * True for the name of a reasoning model, false for that of another model, null for a name that does not show it, such
 * as that of another vendor's model or of an Azure deployment. The user's `capabilities` take precedence.
 */
export function isReasoningModel(id: string): boolean | null {
  const rule = RULES.find(([pattern]) => pattern.test(id))
  return rule === undefined ? null : rule[1]
}

/** True for the models whose API can search deferred tools: gpt-5.4 and later ones. */
export function searchesTools(id: string): boolean {
  return TOOL_SEARCHERS.test(id) && isReasoningModel(id) === true
}

/** The first match decides. */
const RULES: readonly (readonly [RegExp, boolean])[] = [
  [modelPattern('gpt-5(-[^.]*)?-chat'), false],
  [modelPattern('gpt-5\\.3-chat'), false],
  [modelPattern('gpt-([5-9]|[12]\\d)(?!\\d)'), true],
  [modelPattern('o\\d'), true],
  [modelPattern('(codex-|computer-use|gpt-oss)'), true],
  [modelPattern('(gpt-[1-4]|chatgpt-|davinci|babbage)'), false],
]

/**
 * A name with this beginning, after the prefixes of gateways (`openai/gpt-5`), of Bedrock (`us.openai.gpt-oss-20b-1:0`) and of
 * fine-tuned models (`ft:gpt-4.1:…`).
 */
function modelPattern(start: string): RegExp {
  return new RegExp(`^(.*/)?([a-z-]+\\.)*(ft:)?${start}`, 'i')
}

const TOOL_SEARCHERS = modelPattern('gpt-(5\\.([4-9]|\\d\\d)|[6-9]|[12]\\d)(?!\\d)')
