import { resultForModel, toolCallsOf } from '#contracts/entry.js'
import { defineTool } from '#core/tools/define-tool.js'
import type { ContentPart, ContentSource, TranscriptEntry } from '#contracts/entry.js'
import type { ToolOutcome, ToolSpec } from '#core/tools/tool-spec.js'
import { entryIndex } from './spans.js'

/** Longest text of a page, in characters. */
const PAGE = 16_000

/** Reads originals of the conversation, page by page. Every policy that replaces entries brings it. */
export const recall: ToolSpec = defineTool({
  name: 'recall',
  description:
    'Read earlier parts of this conversation that were removed or summarized to save space, in full. A note in place of such a part has its handle.',
  parameters: {
    type: 'object',
    properties: {
      handle: { type: 'string', description: 'The handle from the note, such as `run_1.e7` or `run_1.e2-e40`.' },
      page: { type: 'integer', minimum: 1, description: 'Default 1.' },
    },
    required: ['handle'],
    additionalProperties: false,
  },
  annotations: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
  maxOutputChars: 2 * PAGE,
  handler: (args, { transcript = [] }) => {
    const { handle, page = 1 } = args as { readonly handle: string; readonly page?: number }
    const range = handleRange(handle, transcript)
    if (range === null)
      return recallFailure(
        `This conversation has no part \`${handle}\`. Copy the handle from the note in place of the part.`,
      )
    const pages = entryPages(transcript.slice(range.first, range.last + 1))
    const found = pages[page - 1]
    if (found === undefined) return recallFailure(`\`${handle}\` has ${pages.length} pages.`)
    return recallOutcome(found, { page, pages: pages.length })
  },
})

interface Range {
  readonly first: number
  readonly last: number
}

/** `run.e1`, `run.e1-e9`, or the same without a run. */
function handleRange(handle: string, transcript: readonly TranscriptEntry[]): Range | null {
  const ids = [handle, handle.slice(handle.lastIndexOf('.') + 1)]
  for (const id of ids) {
    const place = entryIndex(transcript, id)
    if (place >= 0) return { first: place, last: place }
    for (let dash = id.indexOf('-'); dash >= 0; dash = id.indexOf('-', dash + 1)) {
      const [first, last] = [entryIndex(transcript, id.slice(0, dash)), entryIndex(transcript, id.slice(dash + 1))]
      if (first >= 0 && last >= first) return { first, last }
    }
  }
  return null
}

/** Text of one source. */
interface Page {
  text: string
  readonly source: ContentSource | undefined
  readonly parts: ContentPart[]
}

/** Texts of two sources are never on one page: what is read again keeps its source. */
function entryPages(entries: readonly TranscriptEntry[]): readonly Page[] {
  const pages: Page[] = []
  for (const entry of entries) {
    const source = entry.role === 'assistant' ? undefined : entry.source
    const { text, parts } = entryContent(entry)
    const whole = entries.length === 1 ? text : `${entryTitle(entry)}\n${text}`
    for (const piece of splitText(whole)) {
      const page = pages.at(-1)
      const isSame = page !== undefined && JSON.stringify(page.source) === JSON.stringify(source)
      if (isSame && page.text.length + piece.length <= PAGE) page.text += `\n\n${piece}`
      else pages.push({ text: piece, source, parts: [] })
    }
    // Of a range only the text is shown: its entries can be read one by one.
    if (entries.length === 1) pages.at(-1)?.parts.push(...parts)
  }
  return pages
}

function splitText(text: string): readonly string[] {
  const pieces: string[] = []
  for (let start = 0; start < text.length || pieces.length === 0;) {
    let end = Math.min(text.length, start + PAGE)
    // A surrogate pair is not cut in two.
    if (end < text.length && /[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end -= 1
    pieces.push(text.slice(start, end))
    start = end
  }
  return pieces
}

function entryTitle(entry: TranscriptEntry): string {
  const kind = entry.role === 'tool' ? `result of ${entry.name}` : entry.role === 'user' ? 'message' : 'reply'
  return `## ${entry.id}: ${kind}, ${entry.at}`
}

/** An entry as the model read it. */
export function entryContent(entry: TranscriptEntry): {
  readonly text: string
  readonly parts: readonly ContentPart[]
} {
  if (entry.role === 'assistant') {
    const calls = toolCallsOf(entry.parts).map((call) => `${call.name}(${call.arguments})`)
    const said = entry.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
    return { text: [...said, ...calls].join('\n'), parts: [] }
  }
  const content = entry.role === 'tool' ? resultForModel(entry, 'prefix') : entry.content
  if (typeof content === 'string') return { text: content, parts: [] }
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
  return { text, parts: content.filter(({ type }) => type !== 'text') }
}

function recallOutcome(
  { text, source, parts }: Page,
  { page, pages }: { readonly page: number; readonly pages: number },
): ToolOutcome {
  const note = pages === 1 ? '' : `\n\n[Page ${page} of ${pages}.${page < pages ? ` Next: page ${page + 1}.` : ''}]`
  return {
    kind: 'succeeded',
    content: text + note,
    metadata: { page, pages, ...(source !== undefined && { content_source: { ...source } }) },
    ...(parts.length > 0 && { parts }),
  }
}

function recallFailure(content: string): ToolOutcome {
  return { kind: 'failed', errorType: 'NotFound', content, retry: true }
}
