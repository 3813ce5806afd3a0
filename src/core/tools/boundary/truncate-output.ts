import type { ContentSource } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { plainJson } from '#util/plain-json.js'
import type { ToolOutcome, ToolSpec } from '../tool-spec.js'
import { wholeEnd, wholeStart } from './input-summary.js'

/**
 * An outcome with a text of at most `maxOutputChars` characters (UTF-16 units) and metadata of at most 20,000 as JSON. A longer
 * text keeps its start and end, around a line with the number of characters left out; the metadata get `truncated` and
 * `chars`, the whole length. An outcome within its bounds is returned unchanged.
 */
export function withinBounds(
  { maxOutputChars: maxChars = DEFAULT_MAX_OUTPUT_CHARS }: Pick<ToolSpec, 'maxOutputChars'>,
  outcome: ToolOutcome,
): ToolOutcome {
  switch (outcome.kind) {
    case 'succeeded':
    case 'failed': {
      const metadata = outcome.metadata && boundedMetadata(outcome.metadata)
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

const DEFAULT_MAX_OUTPUT_CHARS = 40_000

interface Unbounded {
  readonly spec: Pick<ToolSpec, 'name' | 'maxOutputChars'> | undefined
  readonly outcome: ToolOutcome
  /** The kind of its source, if it is known. */
  readonly source: () => ContentSource['kind'] | null
}

/** An outcome within the bounds of its tool, in a run. The whole of a longer text is saved if a tool of the run can read it. */
export function bound(
  { tools, root }: { readonly tools: ReadonlyMap<string, ToolSpec>; readonly root: string },
  { spec = UNKNOWN_TOOL, outcome, source }: Unbounded,
): ToolOutcome | Promise<ToolOutcome> {
  const within = withinBounds(spec, outcome)
  if (!('content' in outcome) || !('content' in within) || within.content.length === outcome.content.length)
    return within
  for (const { saveOutput } of tools.values()) {
    if (saveOutput === undefined) continue
    const { name: toolName, maxOutputChars: maxChars = DEFAULT_MAX_OUTPUT_CHARS } = spec
    const long = { toolName, text: outcome.content, maxChars, source: source(), root }
    return saveOutput(long).then(
      (saved) => ({ ...within, content: detached(saved.content), metadata: { ...within.metadata, ...saved.metadata } }),
      () => within,
    )
  }
  return within
}

const UNKNOWN_TOOL: Pick<ToolSpec, 'name' | 'maxOutputChars'> = { name: 'output' }

/** A value is logged only if the model reads all of it. */
function withoutValue(outcome: ToolOutcome & { kind: 'succeeded' | 'failed' }): typeof outcome {
  if (outcome.kind === 'failed') return outcome
  const { value: _, ...rest } = outcome
  return rest
}

function shortened(text: string, maxChars: number): string {
  // Of the longest possible line, so that the result never exceeds the limit.
  const room = maxChars - leftOut(text.length, text.length).length
  if (room < 2) return detached(wholeStart(text, maxChars))
  const start = wholeStart(text, Math.ceil(room / 2))
  const end = wholeEnd(text, Math.floor(room / 2))
  return detached(start + leftOut(text.length - start.length - end.length, text.length) + end)
}

function leftOut(count: number, of: number): string {
  return `\n[… ${count} of ${of} characters left out …]\n`
}

/**
 * A copy: a slice would keep the whole string in memory as long as the transcript, and so would its `structuredClone` from
 * Node 26 on.
 */
function detached(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string
}

const LONGEST_METADATA = 20_000

/** Metadata that the loop and hooks read. */
const KEPT = new Set(['error_type', 'retry', 'tool'])

function boundedMetadata(metadata: JsonObject): JsonObject {
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
