import type { ContentPart, TranscriptEntry } from '#contracts/entry.js'
import { HarnessError, isOversized } from '#contracts/errors.js'

/** True if the provider refused a request since it is longer than the model's window, or has too many bytes or pictures. */
export function isTooMuch(error: unknown): error is HarnessError {
  return error instanceof HarnessError && (error.code === 'context_overflow' || isOversized(error))
}

/** How often a request that is too long is made shorter and repeated, before its run fails. */
const MOST_REPEATS = 3

/** True if a request that failed may be repeated with a shorter view, after so many `refusals`. */
export function canBeRepeated(error: unknown, refusals: number): error is HarnessError {
  return refusals <= MOST_REPEATS && isTooMuch(error)
}

/** Entries that the error names. */
const NAMED = 3

/** The error of a request that cannot be made to fit. It names the largest entries of the view. */
export function tooMuchError(cause: HarnessError, view: readonly TranscriptEntry[]): HarnessError {
  const sized = view.map((entry) => ({ entry, length: lengthOf(entry) }))
  const largest = sized.toSorted((one, other) => other.length - one.length).slice(0, NAMED)
  const names = largest.map(({ entry, length }) => `\`${entry.id}\` (${kindOf(entry)}, ${length} characters)`)
  const what = isOversized(cause) ? sizeText(view) : "The conversation is longer than the model's window:"
  const message = `${what} ${cause.message} Largest entries: ${names.join(', ')}.`
  return new HarnessError(cause.code, message, {
    cause,
    ...(cause.status !== undefined && { status: cause.status }),
    failure: cause.failure ?? 'context',
  })
}

function sizeText(view: readonly TranscriptEntry[]): string {
  const bytes = view.reduce((sum, entry) => sum + lengthOf(entry), 0)
  const media = view
    .flatMap((entry) => (entry.role === 'assistant' || typeof entry.content === 'string' ? [] : entry.content))
    .flatMap((part) => ('data' in part ? [part.data.length] : []))
  const pictures = `${media.length} pictures and files of ${media.reduce((sum, length) => sum + length, 0)} bytes`
  return `The request is larger than the provider takes. It has about ${bytes} bytes, with ${pictures}:`
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
