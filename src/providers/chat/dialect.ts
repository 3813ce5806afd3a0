import { HarnessError } from '../../errors.js'
import type { ReasoningEffort } from '../../model/contracts.js'
import { didYouMean } from '../../util/suggest.js'

/**
 * In what a server of the chat completions API differs from the others. What a reply may look like needs no word here:
 * all forms are read from every server.
 */
export interface ChatDialect {
  /** Role of the message that holds the instructions. */
  readonly instructionsRole: 'system' | 'developer'
  /** Field of the cap of one reply. */
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens'
  /** Where the reasoning effort is said: as `reasoning_effort`, or as `effort` within `reasoning`. */
  readonly effortField: 'reasoning_effort' | 'reasoning'
  /** The server's words for efforts that it knows by another name. */
  readonly efforts: Readonly<Partial<Record<ReasoningEffort, string>>>
  /** Usage of a stream is asked for by `stream_options`. */
  readonly streamOptions: boolean
  /** The server wants back the reasoning that it sent, in the form in which it sent it. If not, it is left out. */
  readonly replaysReasoning: boolean
  /** Field that every assistant message must have in a conversation of a reasoning model, if only empty. */
  readonly requiredReasoningField: 'reasoning_content' | 'reasoning' | null
  /** Other fields of the server's own messages that are sent back to it. */
  readonly replayedFields: 'all' | readonly string[]
  /** How an assistant message without text is written. */
  readonly emptyContent: 'absent' | 'null'
  /** The content of a user message may be a list of parts; if not, only text can be sent. */
  readonly contentLists: boolean
  /** Call ids that are accepted; others are translated. */
  readonly callIds: 'any' | 'up_to_40' | 'nine_alphanumeric'
  /** Arguments of a tool call in the history may be any text; if not, what is no JSON object is put into one. */
  readonly anyArguments: boolean
  /** Field for the key by which requests share a prompt cache. */
  readonly cacheKeyField: 'prompt_cache_key' | null
  /** Marks of Anthropic's prompt cache are understood. */
  readonly cacheMarks: boolean
  /** Media types that each kind of part may have. */
  readonly imageTypes: MediaTypes
  readonly fileTypes: MediaTypes
  readonly audioTypes: MediaTypes
}

/** Media types that are accepted; `any`: the server decides. */
export type MediaTypes = 'any' | readonly string[]

/** A server that nothing is known of: cautious in what is sent. */
const UNKNOWN_SERVER: ChatDialect = {
  instructionsRole: 'system',
  maxTokensField: 'max_tokens',
  effortField: 'reasoning_effort',
  efforts: {},
  streamOptions: true,
  replaysReasoning: true,
  requiredReasoningField: null,
  replayedFields: 'all',
  emptyContent: 'null',
  contentLists: true,
  callIds: 'any',
  anyArguments: false,
  cacheKeyField: null,
  cacheMarks: false,
  imageTypes: 'any',
  fileTypes: 'any',
  audioTypes: 'any',
}

export const OPENAI: ChatDialect = {
  ...UNKNOWN_SERVER,
  maxTokensField: 'max_completion_tokens',
  replayedFields: ['refusal', 'audio'],
  callIds: 'up_to_40',
  anyArguments: true,
  cacheKeyField: 'prompt_cache_key',
  imageTypes: ['image/png', 'image/jpeg', 'image/webp', 'image/gif'],
  fileTypes: ['application/pdf'],
  audioTypes: ['audio/wav', 'audio/mpeg'],
}

export const OPENROUTER: ChatDialect = {
  ...UNKNOWN_SERVER,
  effortField: 'reasoning',
  efforts: { max: 'xhigh' },
  emptyContent: 'absent',
}

/** Refuses message fields and request fields that it does not know; tells the usage of a stream unasked. */
const MISTRAL: Partial<ChatDialect> = { callIds: 'nine_alphanumeric', replayedFields: [], streamOptions: false }
/** Refuses message fields that it does not know. */
const GROQ: Partial<ChatDialect> = { replayedFields: [] }
/** Refuses, while it reasons, a history with assistant messages that have no `reasoning_content`, and lists as content. */
const DEEPSEEK: Partial<ChatDialect> = { requiredReasoningField: 'reasoning_content', contentLists: false }

/** What is known of servers, by the end of their host name. */
const KNOWN_SERVERS: readonly (readonly [host: string, dialect: Partial<ChatDialect>])[] = [
  ['api.mistral.ai', MISTRAL],
  ['api.groq.com', GROQ],
  ['api.deepseek.com', DEEPSEEK],
  ['api.openai.com', OPENAI],
  ['.openai.azure.com', OPENAI],
]

/** The dialect of the server at `baseUrl`, with what the user knows better. */
export function dialectFor(baseUrl: string, given: Partial<ChatDialect>): ChatDialect {
  for (const name of Object.keys(given)) {
    if (name in UNKNOWN_SERVER) continue
    const hint = didYouMean(name, Object.keys(UNKNOWN_SERVER))
    throw new HarnessError('invalid_options', `Unknown field \`${name}\` of \`dialect\`.${hint}`)
  }
  const host = hostOf(baseUrl)
  const known = KNOWN_SERVERS.find(([end]) => (end.startsWith('.') ? host.endsWith(end) : host === end))
  return { ...UNKNOWN_SERVER, ...known?.[1], ...given }
}

function hostOf(baseUrl: string): string {
  return URL.canParse(baseUrl) ? new URL(baseUrl).hostname : ''
}
