import type { ContentPart, TranscriptEntry } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'

/** True if the provider refused a request since it is longer than the model's window. */
export function isOverflow(error: unknown): error is HarnessError {
  return error instanceof HarnessError && error.code === 'context_overflow'
}

/** Entries that the error names. */
const NAMED = 3

/** The error of a request that cannot be made to fit. It names the largest entries of the view. */
export function overflowError(cause: HarnessError, view: readonly TranscriptEntry[]): HarnessError {
  const sized = view.map((entry) => ({ entry, length: lengthOf(entry) }))
  const largest = sized.toSorted((one, other) => other.length - one.length).slice(0, NAMED)
  const names = largest.map(({ entry, length }) => `\`${entry.id}\` (${kindOf(entry)}, ${length} characters)`)
  const message = `The conversation is longer than the model's window: ${cause.message} Largest entries: ${names.join(', ')}.`
  return new HarnessError('context_overflow', message, {
    cause,
    ...(cause.status !== undefined && { status: cause.status }),
  })
}

function kindOf(entry: TranscriptEntry): string {
  if (entry.role === 'tool') return `result of \`${entry.name}\``
  return entry.role === 'user' ? 'message' : 'reply'
}

function lengthOf(entry: TranscriptEntry): number {
  if (entry.role !== 'assistant') return contentLength(entry.content)
  return entry.parts.reduce(
    (sum, part) =>
      sum + ('text' in part ? part.text.length : 0) + (part.type === 'tool_call' ? part.arguments.length : 0),
    0,
  )
}

function contentLength(content: string | readonly ContentPart[]): number {
  if (typeof content === 'string') return content.length
  return content.reduce(
    (sum, part) => sum + (part.type === 'text' ? part.text.length : 'data' in part ? part.data.length : 0),
    0,
  )
}
