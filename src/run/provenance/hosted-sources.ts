import { isSourced } from '#contracts/entry.js'
import type { AssistantEntry, AssistantPart, ContentSource, SourcedEntry, TranscriptEntry } from '#contracts/entry.js'

/** The entries with a known source, and in their place in a reply what its provider executed and what its texts cite. */
export function sourcedEntries(transcript: readonly TranscriptEntry[]): readonly SourcedEntry[] {
  return transcript.flatMap((entry) => {
    if (entry.role !== 'assistant') return isSourced(entry) ? [entry] : []
    return entry.parts.flatMap((part) => {
      if (part.type !== 'hosted' && (part.type !== 'text' || part.annotations === undefined)) return []
      const known = ofParts.get(part) ?? partEntries(part, entry)
      ofParts.set(part, known)
      return known
    })
  })
}

/** Made once a part: it never changes, and what is known of an entry is kept by it. */
const ofParts = new WeakMap<AssistantPart, readonly SourcedEntry[]>()

function partEntries(part: AssistantPart, { id, at }: AssistantEntry): readonly SourcedEntry[] {
  const entry = (source: ContentSource, content: string, { callId = '', name = '' }): SourcedEntry => {
    return { role: 'tool', id, at, callId, name, content, isError: false, source }
  }
  // A search may show nothing of what the model has read: it counts nevertheless.
  if (part.type === 'hosted') return [entry(part.source, part.result ?? '', part)]
  if (part.type !== 'text') return []
  return (part.annotations ?? []).map(({ url, title, quote = '', from, to }) => {
    const source: ContentSource =
      url === undefined ? { kind: 'server', ...(title && { name: title }) } : { kind: 'web', name: url }
    return entry(source, [quote, part.text.slice(from, to)].join('\n'), {})
  })
}
