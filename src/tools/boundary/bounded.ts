import type { JsonObject, JsonValue } from '../../util/json.js'
import { isObject } from '../../util/json.js'
import type { ToolOutcome } from '../outcome.js'
import { plainJson } from '../../util/plain-json.js'
import { wholeEnd, wholeStart } from './summaries.js'

/**
 * An outcome whose text has at most `maxChars` characters (UTF-16 units) and whose metadata is JSON of at most 20,000.
 * Of a longer text the start and the end are kept, around a line that says how much was left out, and the metadata say
 * `truncated` and `chars`, the whole length. An outcome within its bounds comes back as it is.
 */
export function bounded(outcome: ToolOutcome, maxChars: number): ToolOutcome {
  switch (outcome.kind) {
    case 'succeeded':
    case 'failed': {
      const metadata = boundedMetadata(outcome.metadata)
      if (outcome.content.length > maxChars) {
        const cut = { ...metadata, truncated: true, chars: outcome.content.length }
        return { ...withoutValue(outcome), content: shortened(outcome.content, maxChars), metadata: cut }
      }
      return metadata === outcome.metadata || metadata === undefined ? outcome : { ...outcome, metadata }
    }
    case 'cancelled':
    case 'rejected': {
      const { reason } = outcome
      return reason === null || reason.length <= maxChars
        ? outcome
        : { ...outcome, reason: shortened(reason, maxChars) }
    }
  }
}

/** The log keeps no more of a value than the model reads. */
function withoutValue(outcome: ToolOutcome & { kind: 'succeeded' | 'failed' }): typeof outcome {
  if (outcome.kind === 'failed') return outcome
  const { value: _, ...rest } = outcome
  return rest
}

function shortened(text: string, maxChars: number): string {
  // The longest that the line can get, so that the result never exceeds the limit.
  const room = maxChars - leftOut(text.length, text.length).length
  if (room < 2) return detached(wholeStart(text, maxChars))
  const start = wholeStart(text, Math.ceil(room / 2))
  const end = wholeEnd(text, Math.floor(room / 2))
  return detached(start + leftOut(text.length - start.length - end.length, text.length) + end)
}

function leftOut(count: number, of: number): string {
  return `\n[… ${count} of ${of} characters left out …]\n`
}

/** A copy: a piece of a string would keep the whole of it in memory for as long as the transcript lives. */
function detached(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le')
}

const LONGEST_METADATA = 20_000
/** The loop and the hooks read these. */
const KEPT = new Set(['error_type', 'retry', 'tool'])

function boundedMetadata(metadata: JsonObject | undefined): JsonObject | undefined {
  if (metadata === undefined) return undefined
  const text = jsonText(metadata)
  if (text !== undefined && text.length <= LONGEST_METADATA) return metadata
  return withoutLargest(plainMetadata(metadata))
}

function withoutLargest(metadata: JsonObject): JsonObject {
  const sizes = Object.entries(metadata).map(([key, value]) => ({ key, chars: key.length + sizeOf(value) }))
  let total = sizes.reduce((sum, { chars }) => sum + chars, 0)
  if (total <= LONGEST_METADATA) return metadata
  const dropped = new Map<string, number>()
  for (const { key, chars } of sizes.sort((left, right) => right.chars - left.chars)) {
    if (total <= LONGEST_METADATA) break
    if (KEPT.has(key) && chars < 1_000) continue
    dropped.set(key, chars)
    total -= chars
  }
  const kept = Object.entries(metadata).filter(([key]) => !dropped.has(key))
  return {
    ...Object.fromEntries(kept),
    metadata_left_out: [...dropped.keys()].slice(0, 20).map((key) => wholeStart(key, 60)),
  }
}

function plainMetadata(metadata: JsonObject): JsonObject {
  const plain = plainJson(metadata)
  return isObject(plain) ? plain : {}
}

/** Characters that a member takes, with its quotes and comma. */
function sizeOf(value: JsonValue | undefined): number {
  return (jsonText(value) ?? '').length + 4
}

function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
