import { isObject, parseJson } from '#util/json.js'
import type { JsonValue } from '#util/json.js'

/**
 * One line of a conversation, neutral between providers. Entries are only ever appended: they are never edited and
 * never removed, so that whatever was encoded of them once stays right.
 */
export type TranscriptEntry = UserEntry | AssistantEntry | ToolEntry

/** The fields that the run gives each entry of the transcript. */
export interface EntryStamp {
  /** Unique within its transcript: `e` and the entry's place, counted from 1. */
  readonly id: string
  /** When the entry joined, ISO 8601 in UTC with milliseconds. */
  readonly at: string
}

/** A message of a person, the host or the harness to the model. */
export interface UserEntry extends EntryStamp {
  readonly role: 'user'
  readonly content: readonly ContentPart[]
  /** Set when the harness wrote it (a limit notice, a correction, a report), not a person. */
  readonly notice?: true
  /** The host's id of a steering message: that the run has taken it is a fact in its log. */
  readonly messageId?: string
  /** Of the report of another run: the call that started it, and the source of its content. */
  readonly callId?: string
  readonly source?: ContentSource
  /** In a view: a provider's own form of the first part of the content, which this provider gets in its place. */
  readonly native?: NativePart
}

/** One reply of a model, its parts in the order in which the model gave them. */
export interface AssistantEntry extends EntryStamp {
  readonly role: 'assistant'
  readonly parts: readonly AssistantPart[]
  /** Name of the provider that answered, such as `anthropic`. */
  readonly provider: string
  /** Model id as it was asked for. */
  readonly model: string
  readonly finishReason: FinishReason
  readonly usage: TokenUsage
  /** Data of the reply as a whole that the provider expects back, such as the container of its programs. */
  readonly native?: NativePart
}

/** The answer to one tool call. Every call of an assistant entry has exactly one before the next request. */
export interface ToolEntry extends EntryStamp {
  readonly role: 'tool'
  readonly callId: string
  readonly name: string
  /**
   * The envelope's JSON text; as parts when the tool also returned images or files (the envelope comes first). The model reads
   * the content of the envelope: `resultForModel`.
   */
  readonly content: string | readonly ContentPart[]
  readonly isError: boolean
  /** The source of the content, if the tool declares it. */
  readonly source?: ContentSource
}

export const CONTENT_SOURCES = ['workspace', 'web', 'server', 'command', 'agent', 'person'] as const

/** The source of the content of a tool's result. */
export interface ContentSource {
  /** `workspace`: its files. `server`: an MCP server. `command`: a program. `agent`: runs that the call started. */
  readonly kind: (typeof CONTENT_SOURCES)[number]
  /** The path of the file, the address, the server's id or the agent's name, if known. */
  readonly name?: string
  /** The server's own name of its tool. */
  readonly tool?: string
  /** Of `agent`: the sources of the content that the runs have read. Of many with a name, the kind alone. */
  readonly sources?: readonly Omit<ContentSource, 'sources'>[]
}

/** An entry with a known source. */
export type SourcedEntry = (ToolEntry | UserEntry) & { readonly callId: string; readonly source: ContentSource }

export function isSourced(entry: TranscriptEntry): entry is SourcedEntry {
  return entry.role !== 'assistant' && entry.source !== undefined && entry.callId !== undefined
}

/** The sources of entries, each once: of replies, those of what their providers executed. */
export function sourcesOf(entries: readonly TranscriptEntry[]): readonly ContentSource[] {
  const sources = new Map<string, ContentSource>()
  for (const entry of entries) {
    const holders = entry.role === 'assistant' ? entry.parts : [entry]
    for (const holder of holders) if ('source' in holder) sources.set(JSON.stringify(holder.source), holder.source)
  }
  return [...sources.values()]
}

/** The source of the answers of runs: it contains what they have read. */
export function agentSource(
  name: string | undefined,
  transcripts: readonly (readonly TranscriptEntry[])[],
): ContentSource {
  const all = transcripts.flatMap(sourcesOf).flatMap(({ sources = [], ...source }) => [source, ...sources])
  const isMany = all.length > MOST_NAMED_SOURCES
  const read = new Map(
    all.map((each) => (isMany ? { kind: each.kind } : each)).map((each) => [JSON.stringify(each), each]),
  )
  return { kind: 'agent', ...(name !== undefined && { name }), ...(read.size > 0 && { sources: [...read.values()] }) }
}

/** A source without a name may be any of its kind. */
const MOST_NAMED_SOURCES = 40

/** The kind that a saved output has when it is read: of what runs have read, the widest. */
export function savedAs(source: ContentSource | undefined): ContentSource['kind'] | null {
  if (source === undefined) return null
  const kinds = new Set(source.sources?.map(({ kind }) => kind))
  return (['web', 'server', 'command', 'agent'] as const).find((kind) => kinds.has(kind)) ?? source.kind
}

/** An entry before the run has stamped it. */
export type Unstamped<Entry extends TranscriptEntry> = Entry extends TranscriptEntry
  ? Omit<Entry, keyof EntryStamp>
  : never

/**
 * Input for a model. `data` is base64 without a `data:` prefix. `id`: a file that `provider` (such as `openai`) has stored under that
 * id; a model of another provider reads that it was left out.
 */
export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly data: string; readonly mediaType: string }
  | { readonly type: 'image'; readonly url: string }
  | { readonly type: 'file'; readonly data: string; readonly mediaType: string; readonly name?: string }
  | StoredFile
  | { readonly type: 'audio'; readonly data: string; readonly mediaType: string }

/** A part that contains what it is, or its address. */
export type GivenPart = Exclude<ContentPart, StoredFile>

/** A file that a provider has stored. `mediaType` says if it is an image; default: it is none. */
export interface StoredFile {
  readonly type: 'file'
  readonly id: string
  readonly provider: string
  readonly mediaType?: string
  readonly name?: string
}

/** A stored file in words, for whoever cannot read it. */
export function shownName({ id, provider, name = id }: StoredFile): string {
  return `The file \`${name}\`, stored by \`${provider}\`.`
}

/** A piece of a model's reply. */
export type AssistantPart = (TextPart | ReasoningPart | ToolCallPart | HostedPart | ImagePart | OpaquePart) & {
  readonly native?: NativePart
}

export interface TextPart {
  readonly type: 'text'
  readonly text: string
  /** The sources that the provider names for passages of the text, in its order. */
  readonly annotations?: readonly Citation[]
}

/** A source of a passage: a page, or a document or file that the model was given. */
export interface Citation {
  /** Absent for a file or a document without an address. */
  readonly url?: string
  /** The title of the page, or the name of the file. */
  readonly title?: string
  /** The passage: UTF-16 offsets in the text of the part, `to` exclusive. The whole text if the provider names no passage. */
  readonly from: number
  readonly to: number
  /** The provider's id of a file. */
  readonly fileId?: string
  /** The words of the source, if the provider quotes them. */
  readonly quote?: string
}

/** A page that a reply cites. */
export interface CitedSource extends Required<Pick<Citation, 'url' | 'from' | 'to'>>, Pick<Citation, 'title'> {
  /** The text part with the passage: the id of its entry, a dot, and the place of the part in it, from 0: `e2.0`. */
  readonly partId: string
}

/** The pages that the replies among entries cite. */
export function citedSources(entries: readonly TranscriptEntry[]): readonly CitedSource[] {
  const found: CitedSource[] = []
  for (const entry of entries) {
    if (entry.role !== 'assistant') continue
    for (const [index, part] of entry.parts.entries()) {
      if (part.type !== 'text') continue
      for (const { url, title, from, to } of part.annotations ?? [])
        if (url !== undefined) found.push({ url, ...(title && { title }), partId: `${entry.id}.${index}`, from, to })
    }
  }
  return found
}

/**
 * A call that the provider executed within the reply, its result, or both: some providers give them as two parts with one
 * `callId`. The harness never runs it.
 */
export interface HostedPart {
  readonly type: 'hosted'
  /** The provider's id of the call; empty if it has none. */
  readonly callId: string
  /** `web_search`, `web_fetch`, `code_execution`, `file_search`, `image_generation`, or the name of a server's tool. */
  readonly name: string
  /** Where its content comes from: `web`, `server` or `command`. */
  readonly source: ContentSource
  /** JSON text; absent of a part that is a result only. */
  readonly arguments?: string
  /** What the provider shows of the result, as text; absent if the call has none yet, or the provider shows nothing. */
  readonly result?: string
  /** The call failed. */
  readonly isError?: true
}

/** An image that the model made. */
export type ImagePart = Extract<ContentPart, { readonly type: 'image' }>

/** The reasoning of the model, as far as the provider shows it; may be empty if only an encrypted form was sent. */
export interface ReasoningPart {
  readonly type: 'reasoning'
  readonly text: string
}

export interface ToolCallPart {
  readonly type: 'tool_call'
  /** Unique within the transcript. Missing or repeated ids of a provider are replaced. */
  readonly callId: string
  readonly name: string
  /** JSON text, as the model wrote it or as the tool boundary repaired it. */
  readonly arguments: string
}

/** A provider's block that the harness does not know or must not touch: kept in its place, replayed to the same provider. */
export interface OpaquePart {
  readonly type: 'opaque'
}

/**
 * A provider's own form of a part or of a reply, replayed unchanged to the same provider and left out for another: signatures,
 * encrypted reasoning, item ids, citations.
 */
export interface NativePart {
  /**
   * The provider whose form `data` has, as in `AssistantEntry.provider`; of a server without a name of its own, `@` and its host
   * follow.
   */
  readonly provider: string
  readonly data: JsonValue
}

/**
 * Why a reply ended; `cancelled`: it was cut off by whoever asked for it. The provider's own value is
 * `ModelTurn.nativeFinishReason`.
 */
export type FinishReason = (typeof FINISH_REASONS)[number]

export const FINISH_REASONS = [
  'stop',
  'tool_calls',
  'length',
  'refusal',
  'content_filter',
  'pause',
  'cancelled',
  'error',
  'other',
] as const

/** The token counts: every type, sum, shape and default of them is made from these fields. */
const COUNTS = {
  /** All input tokens, those read from and written to a cache included. */
  inputTokens: null,
  outputTokens: null,
  /** Part of `inputTokens`. */
  cacheReadTokens: null,
  /** Part of `inputTokens`. */
  cacheWriteTokens: null,
  /** Part of `outputTokens`. */
  reasoningTokens: null,
}

type TokenField = keyof typeof COUNTS

/** A value for each token count. */
export type TokenCounts<T> = { readonly [Field in keyof typeof COUNTS]: T }

/** Tokens of one request. `null`: the provider did not say. */
export interface TokenUsage extends TokenCounts<number | null> {
  /** Part of `cacheWriteTokens`: tokens cached for an hour, if the provider charges more for them. */
  readonly longCacheWriteTokens?: number
  /** Calls that the provider executed and charges for, by tool: `{ web_search: 2 }`. Absent if there were none. */
  readonly hostedCalls?: HostedCalls
}

type HostedCalls = Readonly<Record<string, number>>

export const TOKEN_FIELDS = Object.keys(COUNTS) as readonly TokenField[]

/** Usage of a reply if the provider reported none. */
export const UNREPORTED_USAGE: TokenUsage = COUNTS

/** A value for each token count, made from the name of its field. */
export function tokenCounts<T>(valueOf: (field: TokenField) => T): TokenCounts<T> {
  const counts: { [Field in TokenField]?: T } = {}
  for (const field of TOKEN_FIELDS) counts[field] = valueOf(field)
  return counts as TokenCounts<T>
}

export const NO_TOKENS: TokenCounts<number> = tokenCounts(() => 0)

/** The sum of two usages; a count is null if neither has it. */
export function addTokens(one: TokenUsage, other: TokenUsage): TokenUsage {
  const sum = (a: number | null, b: number | null): number | null => (a === null ? b : a + (b ?? 0))
  const longCacheWriteTokens = (one.longCacheWriteTokens ?? 0) + (other.longCacheWriteTokens ?? 0)
  const counts = tokenCounts((field) => sum(one[field], other[field]))
  const hostedCalls = addCounts(one.hostedCalls ?? {}, other.hostedCalls ?? {})
  return {
    ...counts,
    ...(longCacheWriteTokens > 0 && { longCacheWriteTokens }),
    ...(Object.keys(hostedCalls).length > 0 && { hostedCalls }),
  }
}

/** The sums of counts by name. */
export function addCounts(one: HostedCalls, other: HostedCalls): HostedCalls {
  const names = Object.keys({ ...one, ...other })
  return Object.fromEntries(names.map((name) => [name, (one[name] ?? 0) + (other[name] ?? 0)]))
}

/** A message as content parts of its own: later changes to the given parts have no effect. */
export function contentOf(message: string | readonly ContentPart[]): readonly ContentPart[] {
  return typeof message === 'string' ? [{ type: 'text', text: message }] : message.map((part) => ({ ...part }))
}

/** Base64 as the part for its media type. */
export function mediaPart(data: string, mediaType: string, name = ''): ContentPart {
  if (mediaType.startsWith('image/')) return { type: 'image', data, mediaType }
  if (mediaType.startsWith('audio/')) return { type: 'audio', data, mediaType }
  return { type: 'file', data, mediaType, ...(name !== '' && { name }) }
}

/** The id of the entry at `index` of a transcript. */
export function entryId(index: number): string {
  return `e${index + 1}`
}

/** All text parts of a reply, joined with nothing between. */
export function textOf(parts: readonly AssistantPart[]): string {
  let text = ''
  for (const part of parts) if (part.type === 'text') text += part.text
  return text
}

/** The tool calls of a reply, in the model's order. */
export function toolCallsOf(parts: readonly AssistantPart[]): ToolCallPart[] {
  const calls: ToolCallPart[] = []
  for (const part of parts) if (part.type === 'tool_call') calls.push(part)
  return calls
}

/** How an API marks a failed result: a flag of its own, or the prefix `Error: ` for an API without one. */
export type FailureMark = 'flag' | 'prefix'

/**
 * A tool's result as the model reads it: the content of its envelope and its parts. Of the metadata, it says in words that a
 * failure can be corrected and that a person edited the arguments; the rest is for hooks and hosts. Text that is not exactly an
 * envelope, such as a result from another library's history or in a view, is unchanged.
 */
export function resultForModel(
  { content, isError }: Pick<ToolEntry, 'content' | 'isError'>,
  mark: FailureMark,
): string | readonly ContentPart[] {
  const first = typeof content === 'string' ? content : content[0]?.type === 'text' ? content[0].text : ''
  const parsed = first.startsWith('{') ? parseJson(first) : null
  if (parsed?.ok !== true || !isObject(parsed.value)) return content
  // A hook may have left out the metadata.
  const { ok, content: said, metadata = {}, ...others } = parsed.value
  const isEnvelope = typeof ok === 'boolean' && typeof said === 'string' && Object.keys(others).length === 0
  if (!isEnvelope || !isObject(metadata)) return content
  const isPlain = !isError && metadata['edited_arguments'] === undefined
  const text = isPlain ? said : inWords(said, metadata, isError ? mark : null)
  if (typeof content === 'string') return text
  return text === '' ? content.slice(1) : [{ type: 'text', text }, ...content.slice(1)]
}

const SAYS_AGAIN = /\b(?:again|retry)\b/i

/** A failure, or a result of edited arguments. `failed` is null for a success. */
function inWords(content: string, metadata: Readonly<Record<string, unknown>>, failed: FailureMark | null): string {
  const { edited_arguments: edited, retry } = metadata
  const lines =
    edited === undefined ? [] : [`[A person changed the arguments of this call to ${JSON.stringify(edited)}]`]
  lines.push(content)
  if (failed !== null && retry === true && !SAYS_AGAIN.test(content))
    lines.push('Correct this and call the tool again.')
  const text = lines.join('\n')
  return failed === 'prefix' && !text.startsWith('Error: ') ? `Error: ${text}` : text
}
