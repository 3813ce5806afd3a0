import { HarnessError } from '../../contracts/errors.js'
import type { ReasoningEffort } from '../../contracts/model.js'
import { isObject } from '../../util/json.js'
import { unknownKey } from '../../util/unknown-key.js'
import { REASONING_FIELDS } from './native.js'
import type { ReasoningField } from './native.js'

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
  readonly requiredReasoningField: ReasoningField | null
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
  /** Requests that begin alike are given the same `prompt_cache_key`, so that they find their cache. */
  readonly cacheKeys: boolean
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
  cacheKeys: false,
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
  cacheKeys: true,
  imageTypes: ['image/png', 'image/jpeg', 'image/webp', 'image/gif'],
  fileTypes: ['application/pdf'],
  audioTypes: ['audio/wav', 'audio/mpeg'],
}

export const OPENROUTER: ChatDialect = {
  ...UNKNOWN_SERVER,
  effortField: 'reasoning',
  emptyContent: 'absent',
}

/** Refuses message fields and request fields that it does not know; tells the usage of a stream unasked. */
const MISTRAL: Partial<ChatDialect> = { callIds: 'nine_alphanumeric', replayedFields: [], streamOptions: false }
/** Refuses message fields that it does not know. */
const GROQ: Partial<ChatDialect> = { replayedFields: [] }
/** Refuses, while it reasons, a history with assistant messages that have no `reasoning_content`, and lists as content. */
const DEEPSEEK: Partial<ChatDialect> = { requiredReasoningField: 'reasoning_content', contentLists: false }

/** Refuses fields that its version of the API does not know. */
const AZURE: Partial<ChatDialect> = { ...OPENAI, cacheKeys: false }

/** What is known of servers, by the end of their host name. */
const KNOWN_SERVERS: readonly (readonly [host: string, dialect: Partial<ChatDialect>])[] = [
  ['api.mistral.ai', MISTRAL],
  ['api.groq.com', GROQ],
  ['api.deepseek.com', DEEPSEEK],
  ['api.openai.com', OPENAI],
  ['.openai.azure.com', AZURE],
]

/** The dialect of the server at `baseUrl`, with what the user knows better. Throws `invalid_options`. */
export function dialectFor(baseUrl: string, given: Partial<ChatDialect>): ChatDialect {
  checkDialect(given)
  const host = hostOf(baseUrl)
  const known = KNOWN_SERVERS.find(([end]) => (end.startsWith('.') ? host.endsWith(end) : host === end))
  return { ...UNKNOWN_SERVER, ...known?.[1], ...given }
}

function checkDialect(given: unknown): void {
  if (!isObject(given)) {
    throw new HarnessError('invalid_options', `Expected \`dialect\` to be an object, got \`${JSON.stringify(given)}\`.`)
  }
  const unknown = unknownKey(given, Object.keys(FIELDS), 'field of `dialect`')
  if (unknown !== undefined) throw new HarnessError('invalid_options', unknown)
  for (const [name, value] of Object.entries<unknown>(given)) {
    const { expected, fits } = FIELDS[name as keyof ChatDialect]
    if (fits(value)) continue
    const got = value === undefined ? 'undefined' : JSON.stringify(value)
    throw new HarnessError('invalid_options', `Expected \`dialect.${name}\` to be ${expected}, got \`${got}\`.`)
  }
}

interface Field {
  readonly expected: string
  readonly fits: (value: unknown) => boolean
}

const oneOf = (...values: readonly (string | boolean | null)[]): Field => ({
  expected: values.map((value) => `\`${value}\``).join(' or '),
  fits: (value) => values.some((each) => each === value),
})
const wordOrList = (word: string): Field => ({
  expected: `\`${word}\` or a list of strings`,
  fits: (value) => value === word || (Array.isArray(value) && value.every((each) => typeof each === 'string')),
})
const yesOrNo = oneOf(true, false)

const FIELDS: { readonly [Name in keyof ChatDialect]: Field } = {
  instructionsRole: oneOf('system', 'developer'),
  maxTokensField: oneOf('max_tokens', 'max_completion_tokens'),
  effortField: oneOf('reasoning_effort', 'reasoning'),
  efforts: { expected: 'an object', fits: isObject },
  streamOptions: yesOrNo,
  replaysReasoning: yesOrNo,
  requiredReasoningField: oneOf(...REASONING_FIELDS, null),
  replayedFields: wordOrList('all'),
  emptyContent: oneOf('absent', 'null'),
  contentLists: yesOrNo,
  callIds: oneOf('any', 'up_to_40', 'nine_alphanumeric'),
  anyArguments: yesOrNo,
  cacheKeys: yesOrNo,
  cacheMarks: yesOrNo,
  imageTypes: wordOrList('any'),
  fileTypes: wordOrList('any'),
  audioTypes: wordOrList('any'),
}

function hostOf(baseUrl: string): string {
  return URL.canParse(baseUrl) ? new URL(baseUrl).hostname : ''
}
