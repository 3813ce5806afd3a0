import type { ContentPart, TranscriptEntry } from '#contracts/entry.js'
import type { ProposedChange, ViewContext, ViewProposal } from '#core/extension/view-policy.js'
import { estimateEntry } from '#contracts/estimate.js'
import type { TriggerOptions } from './when-to-compact.js'
import { entryContent } from './recall.js'
import { recallHint, viewSteps } from './spans.js'
import type { ViewSpan } from './spans.js'

/**
 * The oldest pictures and files become a note each: if the provider has refused the request by its size, or would by its known
 * limit. Null if there is nothing to do, or none that can be left out.
 */
export function clearOldMedia(context: ViewContext, options: TriggerOptions): ViewProposal | null {
  const { isTooLarge, mostBytes, view, transcript } = context
  if (!isTooLarge && mostBytes === null) return null
  const { media, rest } = sizeOf(context)
  const limit = (mostBytes ?? Infinity) * SAFE_SHARE
  if (media === 0 || (!isTooLarge && media + rest <= limit)) return null
  const target = Math.max(0, Math.min(media / 2, limit / 2 - rest))
  const changes: ProposedChange[] = []
  let left = media
  const steps = viewSteps(view, transcript)
  for (const { spans } of isTooLarge ? steps : steps.slice(0, -1)) {
    for (const span of spans) {
      if (left <= target) break
      const length = mediaLength(span.entry)
      if (length === 0 || staysAsItIs(span.entry, context, options)) continue
      left -= length
      changes.push(withoutMedia(context, span))
    }
  }
  return changes.length === 0 ? null : { changes }
}

/** Base64 and JSON have more bytes than what is counted here. */
const SAFE_SHARE = 0.9

interface Size {
  generation: number
  counted: number
  /** Characters of base64. */
  media: number
  /** Bytes of everything else, about. */
  rest: number
}

/** The transcript of a run is one object for its lifetime. */
const sizes = new WeakMap<readonly TranscriptEntry[], Size>()

/** Of the view. It grows with it: only new entries are counted. */
function sizeOf({ transcript, view, generation }: ViewContext): Size {
  let size = sizes.get(transcript)
  if (size?.generation !== generation) sizes.set(transcript, (size = { generation, counted: 0, media: 0, rest: 0 }))
  for (const entry of view.slice(size.counted)) {
    size.counted += 1
    size.media += mediaLength(entry)
    size.rest += estimateEntry(entry) * BYTES_PER_TOKEN
  }
  return size
}

const BYTES_PER_TOKEN = 4

function mediaIn(entry: TranscriptEntry): readonly ContentPart[] {
  const content = entry.role === 'assistant' ? '' : entry.content
  return typeof content === 'string' ? [] : content.filter(({ type }) => type !== 'text')
}

function mediaLength(entry: TranscriptEntry): number {
  return mediaIn(entry).reduce((sum, part) => sum + ('data' in part ? part.data.length : 0), 0)
}

function staysAsItIs(
  entry: TranscriptEntry,
  { promptId }: ViewContext,
  { pinned = () => false }: TriggerOptions,
): boolean {
  return entry.id === promptId || (entry.role === 'user' && entry.native !== undefined) || pinned(entry)
}

/** The text of an entry stays word for word. */
function withoutMedia(context: ViewContext, span: ViewSpan): ProposedChange {
  const { entry, first, last } = span
  const count = mediaIn(entry).length
  const what = count === 1 ? 'A picture or file was' : `${count} pictures or files were`
  const note = `[${what} removed to save space.${recallHint(context, span, count === 1 ? 'shows it.' : 'shows them.')}]`
  const { text } = entryContent(entry)
  const { transcript } = context
  return {
    from: transcript[first]?.id ?? entry.id,
    to: transcript[last]?.id ?? entry.id,
    shown: text === '' ? note : `${text}\n${note}`,
  }
}
