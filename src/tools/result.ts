import type { ContentPart } from '../contracts/entry.js'
import { isObject } from '../util/json.js'
import type { JsonObject, JsonValue } from '../util/json.js'
import { parse } from '../contracts/parse.js'
import { boolean, jsonObject, leaf, list, object, optional } from '../util/shape.js'
import type { ToolOutcome } from './outcome.js'
import { plainJson, plainJsonText } from '../util/plain-json.js'

export interface ToolResultFields {
  /** What the model reads: a string as it is, anything else as JSON. */
  readonly content: unknown
  /** Data beside the text, for the model and for hooks; snake_case keys. Default: none. */
  readonly metadata?: JsonObject
  /**
   * Default true. A failed result names its class in `metadata.error_type`; with `metadata.retry: true` it counts
   * against the tool's retry budget.
   */
  readonly ok?: boolean
  /** Images and files for the model, beside the text. */
  readonly parts?: readonly ContentPart[]
}

/**
 * What a handler returns when there is more to say than a value: metadata, a failure, images and files.
 *
 * @example
 * return new ToolResult({ content: rows, metadata: { row_count: rows.length } })
 */
export class ToolResult {
  readonly ok: boolean
  readonly content: string
  /** A copy of the content as JSON; absent if it was a string. */
  readonly value?: JsonValue
  readonly metadata: JsonObject
  readonly parts: readonly ContentPart[]

  /** Throws a `HarnessError` of code `invalid_options` for fields that are none of these. */
  constructor(fields: ToolResultFields) {
    const { content, metadata, ok = true, parts = [] } = parse(FIELDS, fields, '`ToolResult`')
    this.ok = ok
    this.content = contentOf(content)
    Object.assign(this, valueOf(content))
    this.metadata = plainObject(metadata)
    this.parts = parts
  }
}

/**
 * What a handler returned, as its outcome: a `ToolResult` or a succeeded or failed `ToolOutcome` as what it says, a
 * string as it is, any other value as key-sorted JSON. Never throws.
 */
export function outcomeOf(returned: unknown): ToolOutcome {
  if (returned instanceof ToolResult) return outcomeOfResult(returned)
  if (isGivenOutcome(returned)) return returned
  return { kind: 'succeeded', content: contentOf(returned), ...valueOf(returned) }
}

/** Whether a value is a well-formed outcome of any kind. */
export function isOutcome(value: unknown): value is ToolOutcome {
  if (!isObject(value)) return false
  const { kind, reason } = value
  if (kind === 'cancelled') return typeof reason === 'string'
  if (kind === 'rejected') return typeof reason === 'string' || reason === null
  return isGivenOutcome(value)
}

/** Said to the model when a tool returns nothing. */
const NOTHING = 'The tool ran and returned nothing.'

function contentOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined ? NOTHING : plainJsonText(value)
}

/** A copy of a value that is not its own text. */
function valueOf(returned: unknown): { readonly value?: JsonValue } {
  return typeof returned === 'string' || returned === undefined ? {} : { value: plainJson(returned) }
}

/** Metadata are JSON by their type; a handler's own values are not always what they seem. */
function plainObject(value: JsonObject = {}): JsonObject {
  const plain = plainJson(value)
  return isObject(plain) ? plain : {}
}

function outcomeOfResult({ ok, content, value, metadata, parts }: ToolResult): ToolOutcome {
  const rest = { content, metadata, ...(parts.length > 0 && { parts }) }
  if (ok) return { kind: 'succeeded', ...rest, ...(value !== undefined && { value }) }
  const { error_type: errorType, retry } = metadata
  return {
    kind: 'failed',
    errorType: typeof errorType === 'string' ? errorType : 'ToolError',
    retry: retry === true,
    ...rest,
  }
}

const SUCCEEDED = ['kind', 'content', 'value', 'metadata', 'parts']
const FAILED = ['kind', 'content', 'metadata', 'parts', 'errorType', 'retry']

/**
 * An outcome that a handler may give: exactly these fields, so that data with a field `kind` of its own is not mistaken
 * for one.
 */
function isGivenOutcome(value: unknown): value is ToolOutcome {
  if (!isObject(value)) return false
  const { kind, content, errorType, retry, metadata, parts } = value
  if (typeof content !== 'string') return false
  if (metadata !== undefined && !isObject(metadata)) return false
  if (parts !== undefined && !Array.isArray(parts)) return false
  if (kind === 'succeeded') return hasOnly(value, SUCCEEDED)
  return kind === 'failed' && typeof errorType === 'string' && typeof retry === 'boolean' && hasOnly(value, FAILED)
}

function hasOnly(value: object, keys: readonly string[]): boolean {
  return Object.keys(value).every((key) => keys.includes(key))
}

const part = leaf<ContentPart>(
  'a content part: text, or base64 `data` with a `mediaType` for an image, a file or audio, or an image `url`',
  isContentPart,
)

const FIELDS = object<ToolResultFields>({
  content: leaf<unknown>('anything', () => true),
  metadata: optional(jsonObject),
  ok: optional(boolean),
  parts: optional(list(part, 'a list of content parts')),
})

function isContentPart(value: unknown): boolean {
  if (!isObject(value)) return false
  const { type, text, url, data, mediaType } = value
  if (type === 'text') return typeof text === 'string'
  if (type === 'image' && typeof url === 'string') return true
  const isMedia = type === 'image' || type === 'file' || type === 'audio'
  return isMedia && typeof data === 'string' && typeof mediaType === 'string'
}
