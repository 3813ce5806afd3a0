import type { ContentPart } from '#contracts/entry.js'
import { plainBase64 } from '#util/base64.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { parse } from '#contracts/parse.js'
import { boolean, leaf, list, object, optional } from '#util/validate.js'
import type { ToolOutcome } from './tool-spec.js'
import { compactText, plainJson } from '#util/plain-json.js'

export interface ToolResultFields {
  /** For the model: a string unchanged, anything else as compact JSON. */
  readonly content: unknown
  /** Data for hooks and hosts, which the model does not read; snake_case keys. Default: none. */
  readonly metadata?: object | undefined
  /**
   * Default true. A failed result names its class in `metadata.error_type`; with `metadata.retry: true` the model is asked to
   * correct the call, and it counts against the tool's retry budget.
   */
  readonly ok?: boolean | undefined
  /** Images and files for the model, in addition to the text. */
  readonly parts?: readonly ContentPart[] | undefined
}

/**
 * The result of a handler that has more than a value: metadata, a failure, images and files.
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

  /** Throws a `HarnessError` of code `invalid_options` for unknown fields and wrong values. */
  constructor(fields: ToolResultFields) {
    const { content, metadata, ok = true, parts = [] } = parse(FIELDS, fields, '`ToolResult`')
    this.ok = ok
    const { content: text, value } = rendered(content)
    this.content = text
    if (value !== undefined) this.value = value
    this.metadata = plainObject(metadata)
    this.parts = parts
  }
}

/**
 * The outcome of a handler's return value: the fields of a `ToolResult` or of a succeeded or failed `ToolOutcome`, a
 * string unchanged, any other value as compact JSON. Never throws.
 */
export function outcomeOf(returned: unknown): ToolOutcome {
  if (typeof returned === 'string') return { kind: 'succeeded', content: returned }
  if (returned instanceof ToolResult) return outcomeOfResult(returned)
  if (isGivenOutcome(returned)) return returned
  return { kind: 'succeeded', ...rendered(returned) }
}

/** True for a well-formed outcome of any kind. */
export function isOutcome(value: unknown): value is ToolOutcome {
  if (!isObject(value)) return false
  const { kind, reason } = value
  if (kind === 'cancelled') return typeof reason === 'string'
  if (kind === 'rejected') return typeof reason === 'string' || reason === null
  return isGivenOutcome(value)
}

/** For the model, if a tool returns nothing. */
const NOTHING = 'The tool ran and returned nothing.'

/** The text of a value for the model, and a copy of the value if it is no string. */
function rendered(returned: unknown): { readonly content: string; readonly value?: JsonValue } {
  if (typeof returned === 'string') return { content: returned }
  if (returned === undefined) return { content: NOTHING }
  const value = plainJson(returned)
  return { content: compactText(value), value }
}

/** Metadata are JSON by their type; the values of a handler are not always. */
function plainObject(value: object = {}): JsonObject {
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

/** An outcome that a handler may return: exactly these fields, so that other data with a field `kind` is no outcome. */
function isGivenOutcome(value: unknown): value is ToolOutcome {
  if (!isObject(value)) return false
  const { kind, content, errorType, retry, metadata, parts } = value
  if (typeof content !== 'string') return false
  if (metadata !== undefined && !isObject(metadata)) return false
  if (parts !== undefined && !Array.isArray(parts)) return false
  const isFailed = kind === 'failed' && typeof errorType === 'string' && typeof retry === 'boolean'
  if (!isFailed && kind !== 'succeeded') return false
  const fields = isFailed ? FAILED : SUCCEEDED
  for (const key of Object.keys(value)) if (!fields.includes(key)) return false
  return true
}

const part = leaf<ContentPart>(
  'a content part: text, or base64 `data` with a `mediaType` for an image, a file or audio, or an image `url`',
  isContentPart,
)

const FIELDS = object<ToolResultFields>({
  content: leaf<unknown>('anything', () => true),
  metadata: optional(leaf<object>('an object', isObject)),
  ok: optional(boolean),
  parts: optional(list(part, 'a list of content parts')),
})

function isContentPart(value: unknown): boolean {
  if (!isObject(value)) return false
  const { type, text, url, data, mediaType } = value
  if (type === 'text') return typeof text === 'string'
  if (type === 'image' && typeof url === 'string') return true
  if (type === 'file' && typeof value['id'] === 'string') return typeof value['provider'] === 'string'
  const isMedia = type === 'image' || type === 'file' || type === 'audio'
  return isMedia && typeof data === 'string' && plainBase64(data) !== null && typeof mediaType === 'string'
}
